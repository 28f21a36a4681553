"""A line that memd adds to a text file of a person, such as .zshrc."""

from msgspec import Struct

from memd.cli.setup.pieces import ABSENT, INSTALLED, OUTDATED

_MARK = b"# memd; memctl setup zsh --remove takes this line out"


class Line(Struct, frozen=True):
    """One line of memd's at the end of a person's text file, found again by its comment."""

    path: str
    line: str

    def state(self, content: bytes | None) -> str:
        """Return whether the line is installed, outdated (changed) or absent in a content."""
        ours = [line for line in (content or b"").splitlines() if _MARK in line]
        if not ours:
            return ABSENT
        return INSTALLED if ours == [self._bytes] else OUTDATED

    def with_part(self, content: bytes | None) -> bytes:
        """Return the content with the line at its end and without an older one."""
        if content and self.state(content) == INSTALLED:
            return content
        others = _without_line(content or b"")
        newline = b"" if not others or others.endswith(b"\n") else b"\n"
        return b"%s%s%s\n" % (others, newline, self._bytes)

    def without_part(self, content: bytes, original: bytes | None) -> bytes | None:
        """Return the content without the line, ``None`` if nothing else was in the file.

        ``original`` is the content before the set-up, if a backup has it.
        """
        if original is not None and self.with_part(original) == content:
            return original
        others = _without_line(content)
        return None if original is None and not others.strip() else others

    @property
    def _bytes(self) -> bytes:
        """The line in the file, with memd's comment."""
        return f"{self.line}  ".encode() + _MARK


def _without_line(content: bytes) -> bytes:
    """Return the content without the lines that carry memd's comment."""
    return b"".join(line for line in content.splitlines(keepends=True) if _MARK not in line)
