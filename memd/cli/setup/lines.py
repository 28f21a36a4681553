"""A line of memd's own in a text file of a person, such as a shell's."""

from msgspec import Struct

from memd.cli.setup.pieces import ABSENT, INSTALLED, OUTDATED

_MARK = b"# memd; memctl setup zsh --remove takes this line out"


class Line(Struct, frozen=True):
    """A line of memd's own at the end of a person's text file; it names memd."""

    path: str
    line: str

    def state(self, content: bytes | None) -> str:
        """As in Piece."""
        ours = [line for line in (content or b"").splitlines() if _MARK in line]
        if not ours:
            return ABSENT
        return INSTALLED if ours == [self._bytes] else OUTDATED

    def installed(self, content: bytes | None) -> bytes:
        """As in Piece."""
        if content and self.state(content) == INSTALLED:
            return content
        left = _without_line(content or b"")
        gap = b"" if not left or left.endswith(b"\n") else b"\n"
        return b"%s%s%s\n" % (left, gap, self._bytes)

    def removed(self, content: bytes, original: bytes | None) -> bytes | None:
        """As in Piece."""
        if original is not None and self.installed(original) == content:
            return original
        left = _without_line(content)
        return None if original is None and not left.strip() else left

    @property
    def _bytes(self) -> bytes:
        return f"{self.line}  ".encode() + _MARK


def _without_line(content: bytes) -> bytes:
    return b"".join(line for line in content.splitlines(keepends=True) if _MARK not in line)
