"""An agent that remembers, learns and stays small: the whole of memd as one middleware."""

import sys
from pathlib import Path

from anthropic import Anthropic, beta_tool

from memd.client.context import Keeper

MODEL = "claude-haiku-5-5"


@beta_tool
def read_file(path: str) -> str:
    """Return the text of a file below the working directory."""
    return Path(path).read_text(errors="replace")


client = Anthropic()
model = client.beta.models.retrieve(MODEL)  # tells memd what it can do
keeper = Keeper(".", sys.argv[1], model=model, seconds=1.0)  # the memory of this project
runner = client.with_middleware(
    keeper
).beta.messages.tool_runner(
    model=MODEL,
    max_tokens=4096,
    betas=["compact-2026-09-04"],
    thread=False,  # the conversation stays here, where memd can plan it
    messages=[{"role": "user", "content": " ".join(sys.argv[2:])}],
    tools=[read_file, keeper.reader_tool()],  # with the second the model reads what is stored
)
for message in runner:
    print("".join(block.text for block in message.content if block.type == "text"))
    keeper.after_turn(runner)  # where the window is nearly full: notes, or the API compacts
