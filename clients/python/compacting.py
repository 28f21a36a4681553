"""A chat that never runs out of window: memd writes down what it is about, and that goes on."""

import os
import sys

from anthropic import Anthropic

from memd.client.launch import connect
from memd.core.places import find

MOST_TOKENS = 150_000  # what the model is given before the notes take the place of the rest
model, said, notes, start = Anthropic(), [], [], 0
here = {"cwd": os.getcwd(), "session_id": f"chat-{os.getpid()}"}
memd = connect(find(os.environ, os.path.expanduser("~")), os.environ, name="chat")
for line in sys.stdin:
    said.append({"role": "user", "content": line})
    reply = model.messages.create(
        model="claude-haiku-5-5", max_tokens=4096, messages=notes + said[start:]
    )
    said.append({"role": "assistant", "content": reply.content[0].text})
    print(reply.content[0].text)
    full = reply.usage.input_tokens > MOST_TOKENS
    memd.call("notes.update", {**here, "messages": said, "force": full, "wait": full})
    if full:
        read = memd.call("notes.read", {**here, "max_chars": 30_000})
        notes, start = [{"role": "user", "content": read["content"]}], len(said) - 2
memd.call("session.end", here)
