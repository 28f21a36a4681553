"""A member with a token of their own who talks to the server directly, and what they try."""

import json
import uuid

from memd.base.text import sha256
from tests.server.servers import TeamServer
from tests.store.test_memory import BOMBS

# Names that are none of a memory; those that no JSON can hold come as escapes.
NAMES = (
    "a.md/", "./a.md", "x//b.md", "x/./b.md", "x/../b.md", ".md", "..md", "b.md.", "b.md ",
    "A.MD", "b.md:x", "CON.md", "aux.md", "COM1.md", "LPT9.md", "NUL", "x\\b.md", "C:b.md",
    "\\\\?\\C:\\b.md", "//host/b.md", "file:///b.md", "~/b.md", "~root/b.md", "$HOME/b.md",
    "${HOME}", "%HOME%", "%2e%2e%2fb.md", "%252e", "%c0%ae", "..%00/b.md", "b%00.md", "b\n.md",
    "b\r.md", "b\t.md", "\x1b[2J.md", "\x7f.md", "\x80.md", "\uff0e\uff0e\uff0fb.md",
    "\u2025/b.md", "\u2024.md", "x\u2215b.md", "x\u29f8b.md", "\ufe52md", "b\u200b.md",
    ".g\u200cit/b.md", "b\u202e.md", "\ufeffb.md", "\u0130.md", "\u1e9e.md", "\ufb01.md",
    "\u00e9.md", "e\u0301.md", "\ud800.md", "\udc80.md", "x" * 252 + ".md", "x" * 4093 + ".md",
    "d/" * 100 + "b.md", "-rf.md", "--help", "*.md", "[b].md", "{b,c}.md", "`id`.md", "$(id).md",
    ";id.md", "'.md", '".md', "<b>.md", "b](x).md", "b%20c.md", "MEMORY.md", "x/MEMORY.md",
    ".consolidate-lock", "x/y/z/b.md", "../b.md", "/etc/b.md", "team.toml", "", "a.md/b.md",
)  # fmt: skip


class Mallory:
    """Sends what they like; ``repository`` is the path of the repository's routes."""

    def __init__(self, server: TeamServer) -> None:
        self.client = server.client("mallory")
        self.repository = f"/v1/repos/{server.repository}"

    def put(self, key: str, content: str, base: int | None = None) -> int:
        """Write one entry and return the status."""
        text = content.encode("utf-8", "surrogatepass")
        entry = {"key": key, "content": content, "hash": sha256(text), "base": base}
        body = json.dumps({"entries": [entry]})  # in ASCII: it has what UTF-8 has not
        headers = {"Content-Type": "application/json", "Idempotency-Key": str(uuid.uuid4())}
        return self.client.put(
            f"{self.repository}/entries", content=body, headers=headers
        ).status_code


def bombs() -> list[str]:
    """Return files whose frontmatter goes off where it is not guarded, of a size that may pass."""
    head = "name: n\ndescription: d\nmetadata:\n  type: project\n"
    return [f"---\n{head}{bomb}\n---\n\nbody\n" for bomb in BOMBS if len(bomb) < 60_000]
