"""An agent that remembers with memd; what it is to do comes as arguments."""

import sys

from anthropic import Anthropic

from memd.client.memory_tool import MemoryTool

memory = MemoryTool(".")  # the memories of this directory's project; a daemon is started for it
runner = Anthropic().beta.messages.tool_runner(
    model="claude-haiku-5-5",
    max_tokens=4096,
    thread=False,  # the conversation stays here; with memd nothing else has to
    betas=["context-management-2025-06-27"],
    system="Look into your memory first. Keep there what later conversations need.",
    messages=[{"role": "user", "content": " ".join(sys.argv[1:])}],
    tools=[memory],
)
for message in runner:
    for block in message.content:
        if block.type == "text":
            print(block.text)
memory.close()
