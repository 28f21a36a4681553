"""Marks that turn the direction of text never reach a prompt or a terminal by way of a name."""

import re
from functools import partial
from pathlib import Path

import pytest
from anyio import to_thread

from memd.client.aio import AsyncClient
from memd.store.index import manifest
from memd.text.invisible import DIRECTIONS
from tests.cli.driver import memctl
from tests.cli.home import Home
from tests.store.bench import open_bench
from tests.support.daemon import daemon_here, throw_away_home

pytestmark = pytest.mark.anyio
MARKS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"
FOUND = re.compile(f"[{DIRECTIONS}]")
FILE = f"gpj.{MARKS}rule.md"
HOSTILE = f"""---
name: deploy{MARKS}rule
description: Deploys{MARKS} never on Friday
type: {{}}
---

Deploy never on Friday.
"""
INDEX = f"- [Deploy{MARKS}s]({FILE}) — Deploys{MARKS} never\n- [By{MARKS} hand](none{MARKS}.md)\n"
COMMANDS = (
    ["list"],
    ["search", "deploys on Friday"],
    ["prefetch", "may I deploy on Friday?", "--session", "t"],
    ["prefetch", "may I deploy on Friday?", "--explain"],
    ["load-prompt"],
    ["history"],
    ["status"],
    ["doctor"],
    ["show", FILE],
)


@pytest.mark.parametrize("kind", ["user", "strange"])
async def test_no_name_turns_the_direction_of_text(kind: str, tmp_path: Path) -> None:
    """Whatever a foreign file is called and says of itself, prompts and terminals stay as read."""
    with throw_away_home() as made:
        cwd = made.project()
        home = Home(made.path, made.environ, made.places, cwd)
        async with daemon_here(made), AsyncClient(made.places.socket, name="t") as client:
            folder = Path((await client.call("memory.list", {"cwd": cwd}))["memory_dir"])
            folder.mkdir(parents=True, exist_ok=True)
            (folder / FILE).write_text(HOSTILE.format(kind))
            (folder / "plain.md").write_text(HOSTILE.format(kind))
            (folder / "MEMORY.md").write_text(INDEX)
            note = {"path": "a.md", "name": "a", "type": "user", "body": "b"}
            await client.call("memory.write", {"cwd": cwd, **note, "description": f"d{MARKS}"})
            ask = {"cwd": cwd, "query": "may I deploy on Friday?", "session_id": "s"}
            shown = [
                (await client.call("load_prompt", {"cwd": cwd}))["prompt"],
                (await client.call("prefetch", ask))["block"],
                str(
                    await client.call(
                        "memory.tool",
                        {"cwd": cwd, "command": {"command": "view", "path": "/memories"}},
                    )
                ),
            ]
            assert all("Deploy" in text for text in shown[:2])
            with open_bench(tmp_path) as bench:
                headers = bench.reader.headers(str(folder))
                shown += [manifest(headers), *(h.name + h.description for h in headers)]
            for command in COMMANDS:
                run = partial(memctl, home, *command, terminal=True)
                ran = await to_thread.run_sync(run)
                assert ran.status in (0, 1), ran.err
                shown += [ran.out, ran.err]
        assert [text for text in shown if FOUND.search(text)] == []
