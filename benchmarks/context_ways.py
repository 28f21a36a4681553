"""The way of memd that is measured: its middleware.

The model that writes summaries is scripted: of each message it keeps the first sentence, and the
lines that name a failure. It knows nothing of what is asked for later.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anthropic

from benchmarks.context_runs import MODEL, Message, Way
from memd.client.context import Keeper
from memd.client.stored import MOST_BYTES
from memd.core.prices import price
from tests.support.daemon import Home, client, daemon_process, throw_away_home
from tests.support.messages import MessagesServer, messages_server, text
from tests.support.messages_cache import blocks
from tests.support.messages_request import ReceivedMessage
from tests.support.messages_steps import ScriptedReply

COMPACT_AT = 167_000
_SUMMARIZER = "claude-haiku-5-5"
_SECONDS = 10.0  # a loaded machine is not what is measured here
_NOTES_SECONDS = 60.0
_SETTINGS = """
[model]
base_url = "{}"
[notes]
use_model = false
[spend]
dollars_per_day = 10000
tokens_per_day = 100000000000
"""
_FIRST_SENTENCE = re.compile(r"^[^\n.]{20,300}\.", re.MULTILINE)
_FAILED = re.compile(r"^.*\b(?:FAILED|ERROR)\b.*$", re.MULTILINE)


class Kept(Way):
    """memd's middleware; with a model that can, by the API's context management too.

    ``strategy`` compacts the conversation where it has grown to ``compact_at`` tokens.
    """

    def __init__(
        self,
        home: Home,
        session: str,
        *,
        model: Any = None,
        strategy: str = "",
        compact_at: int = COMPACT_AT,
    ) -> None:
        where = home.project()
        self._home, self._session = home, {"cwd": where, "session_id": session}
        socket = home.places.socket
        self.keeper = Keeper(where, session, socket=socket, model=model, seconds=_SECONDS)
        self.middleware = [self.keeper]
        self.tools = [self.keeper.reader_tool().to_dict()]
        self.compactions = 0
        self._strategy, self._compact_at = strategy, compact_at

    def after(self, history: list[Message], tokens: int) -> list[Message]:
        """Compact a history that is too long."""
        if not self._strategy or tokens < self._compact_at:
            return history
        self.compactions += 1
        if self._strategy == "notes":
            asked = {**self._session, "messages": history, "force": True, "wait": True}
            with client(self._home, "agent") as line:
                line.call("notes.update", asked, _NOTES_SECONDS)
        return self.keeper.compacted(history, strategy=self._strategy)

    def read(self, path: str) -> str:
        """Read a stored result as the model would: part by part."""
        parts, offset, more = [], 0, True
        while more:
            head, _, part = self.keeper.read(path, offset, MOST_BYTES).partition("\n")
            parts.append(part)
            offset += len(part.encode())
            more = "go on" in head
        return "".join(parts)


@contextmanager
def prepared() -> Iterator[tuple[Home, MessagesServer]]:
    """Run a daemon whose model is the scripted summariser; yield its home and that model."""
    with throw_away_home() as home, messages_server(summary) as server:
        config = Path(home.places.config)
        config.parent.mkdir(parents=True)
        config.write_text(_SETTINGS.format(server.url))
        config.chmod(0o600)
        with daemon_process(home):
            yield home, server


def able(model: str = MODEL, window: int = 200_000) -> Any:
    """Return what the API says that a model with such a window can do."""
    with (
        messages_server(text(""), models=(model,), window=window) as server,
        anthropic.Anthropic(api_key="none", base_url=server.url) as api,
    ):
        return api.beta.models.retrieve(model)


def summary(request: ReceivedMessage) -> ScriptedReply:
    """Return a summary in the first sentences of what was said and the failures of tools."""
    said = [
        str(block.get("text") or block.get("content"))
        for message in request.members["messages"]
        for block in blocks(message["content"])
    ]
    learned = [match[0] for words in said if (match := _FIRST_SENTENCE.search(words))]
    failed = [line for words in said for line in _FAILED.findall(words)]
    sections = (
        ("Request and intent", learned[:1]),
        ("Concepts", learned[1:]),
        ("Errors and fixes", failed[-50:]),
        ("Current work", learned[-3:]),
    )
    parts = [f"# {title}\n" + "\n".join(lines)[:20_000] for title, lines in sections]
    return text("<analysis>All of it.</analysis>\n<summary>\n" + "\n".join(parts) + "\n</summary>")


def summaries_cost(server: MessagesServer) -> float:
    """Return US dollars of all summaries that the scripted model wrote."""
    usage = server.usage
    cached = (usage.get("cache_read_input_tokens", 0), usage.get("cache_creation_input_tokens", 0))
    written = usage.get("output_tokens", 0)
    return price(_SUMMARIZER).money(usage.get("input_tokens", 0), written, *cached)
