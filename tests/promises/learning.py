"""A daemon that asks a scripted Messages server, and a person's conversations with it."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from memd.client.aio import AsyncClient
from tests.promises.transcripts import Conversation
from tests.support.clock import FakeClock
from tests.support.daemon import Home, daemon_here, throw_away_home
from tests.support.messages import MessagesServer, messages_server, text, tools
from tests.support.steps import ReceivedMessage, Script

MODEL = "claude-sonnet-5-5"  # the one that memd asks where nobody names another
RULE = "Install packages with pnpm, not with npm"
WISH = "Remember: install packages with pnpm, not with npm, please."


def memory(name: str, description: str, kind: str, body: str = "", quote: str = "") -> str:
    """Return a memory as a model writes it, with a quotation of the person where there is one."""
    said = json.dumps(description, ensure_ascii=False)
    head = f"name: {name}\ndescription: {said}\nmetadata:\n  type: {kind}"
    proof = f'\n**Said:** "{quote}"\n' if quote else ""
    return f"---\n{head}\n---\n\n{body or description}.\n{proof}"


class Desk:
    """A project on a daemon in this process, and the server that the daemon asks."""

    def __init__(
        self, home: Home, server: MessagesServer, client: AsyncClient, clock: FakeClock
    ) -> None:
        self.home = home
        self.clock = clock
        self.server = server
        self.client = client
        self.cwd = home.project()
        self.memory = Path()

    async def call(self, method: str, **params: Any) -> Any:
        """Call a method of this project."""
        with anyio.fail_after(60):
            return await self.client.call(method, {"cwd": self.cwd, **params})

    async def call_plain(self, method: str, **params: Any) -> Any:
        """Call a method that is about no project."""
        with anyio.fail_after(60):
            return await self.client.call(method, params)

    def conversation(self, session: str) -> Conversation:
        """Begin a conversation."""
        return Conversation(self.home.path, self.cwd, session)

    async def extract(self, said: Conversation, **more: Any) -> Any:
        """Extract and wait for the end."""
        params = {"session_id": said.session, "transcript_path": said.path, "wait": True}
        return await self.call("extract", **params, **more)

    def names(self) -> list[str]:
        """Return the memories on the disk."""
        return sorted(path.name for path in self.memory.glob("*.md"))


@asynccontextmanager
async def desk(
    script: Script, options: str = "", spend: str = "dollars_per_day = 100\n", **server: Any
) -> AsyncIterator[Desk]:
    """Open a daemon whose model is a script, with a project of its own."""
    with throw_away_home() as home, messages_server(script, **server) as serving:
        config = Path(home.places.config)
        config.parent.mkdir(parents=True, exist_ok=True)
        caps = f"[spend]\n{spend}[dream]\nauto = false\n"
        config.write_text(f'[model]\nbase_url = "{serving.url}"\n{caps}{options}')
        config.chmod(0o600)
        clock = FakeClock(1_772_528_400.0)
        async with (
            daemon_here(home, clock),
            AsyncClient(home.places.socket, name="claude-code", environment={}) as client,
        ):
            made = Desk(home, serving, client, clock)
            made.memory = Path((await made.call("memory.list"))["memory_dir"])
            yield made


def turn(request: ReceivedMessage) -> int:
    """Return the how-manieth request of a run this is, beginning with 1."""
    said = [message for message in request.json["messages"] if message["role"] == "assistant"]
    mine = [message for message in said if _calls(message)]
    return 1 + len(mine)


def learns(
    desk_memory: list[Path], name: str = "pnpm.md", said: str = "", quote: str = WISH
) -> Any:
    """Return a script that looks at two files at once, then writes a memory.

    ``desk_memory`` holds the memory directory once that is known, ``quote`` is what the person
    said.
    """

    def answer(request: ReceivedMessage) -> Any:
        folder = desk_memory[0]
        if turn(request) == 1:
            inspect = ("Read", {"file_path": f"{folder}/MEMORY.md"})
            return tools(inspect, ("Glob", {"pattern": "*.md"}), say="I look first.")
        number = sum(path.name.startswith(name[:-3]) for path in folder.glob("*.md"))
        path = name if not number else f"{name[:-3]}{number}.md"
        written = memory(path[:-3], said or RULE, "feedback", quote=quote)
        return tools(("Write", _file(folder / path, written)))

    return answer


def nothing(_: ReceivedMessage) -> Any:
    """Answer that nothing is worth keeping."""
    return text("nothing new")


def members(body: bytes) -> dict[str, str]:
    """Return each member of a JSON object as it stands there, to the byte."""
    whole, results, place = body.decode(), {}, 1
    decoder = json.JSONDecoder()
    while whole[place - 1] != "}":
        name, colon = decoder.raw_decode(whole, place)
        assert whole[colon] == ":"
        _, end = decoder.raw_decode(whole, colon + 1)
        results[name] = whole[colon + 1 : end]
        place = end + 1
    return results


def _file(path: Path, content: str) -> dict[str, str]:
    return {"file_path": str(path), "content": content}


def _calls(message: dict[str, Any]) -> bool:
    content = message["content"]
    blocks = content if isinstance(content, list) else []
    return any(block.get("type") == "tool_use" for block in blocks)
