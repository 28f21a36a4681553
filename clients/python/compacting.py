"""A chat that never runs out of window: memd writes down what it is about, and that goes on."""

import os
import sys
from contextlib import suppress

from anthropic import Anthropic

from memd.base.errors import MemdError
from memd.base.places import find
from memd.client.launch import connect

MOST_TOKENS = 150_000  # what the model is given before the notes take the place of the rest
model, said, notes, start = Anthropic(), [], [], 0
places = find(os.environ, os.path.expanduser("~"))
here = {"cwd": os.getcwd(), "session_id": f"chat-{os.getpid()}"}
for line in sys.stdin:
    said.append({"role": "user", "content": line})
    reply = model.messages.create(
        model="claude-haiku-5-5", max_tokens=4096, messages=notes + said[start:]
    )
    said.append({"role": "assistant", "content": reply.content[0].text})
    print(reply.content[0].text)
    full = reply.usage.input_tokens > MOST_TOKENS
    # Without memd the chat goes on as it is; a daemon that is gone is started again.
    with suppress(MemdError), connect(places, os.environ, name="chat") as memd:
        memd.call("notes.update", {**here, "messages": said, "force": full, "wait": full})
        if full:
            read = memd.call("notes.read", {**here, "max_chars": 30_000})
            notes, start = [{"role": "user", "content": read["content"]}], len(said) - 2
