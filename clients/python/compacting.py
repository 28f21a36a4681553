"""A chat with memory whose window is never full: notes take the place of what was said long ago."""

import os
import sys

from anthropic import Anthropic

from memd.client.context import Keeper

MODEL = "claude-haiku-5-5"
client = Anthropic()
# The memory of this directory's project; the model's facts tell memd how large its window is.
model = client.beta.models.retrieve(MODEL)
keeper = Keeper(".", f"chat-{os.getpid()}", model=model, seconds=1.0)
chat = client.with_middleware(keeper)
said = []
for line in sys.stdin:
    said.append({"role": "user", "content": line})
    reply = chat.messages.create(model=MODEL, max_tokens=4096, messages=said)
    said.append({"role": "assistant", "content": reply.content[0].text})
    print(reply.content[0].text)
    if keeper.plan.get("compact", {}).get("due"):
        said = keeper.compacted(said)
