"""Cut a tool's answer to its limits: bytes, lines, and characters of a line. Pure."""

from collections.abc import Iterable

from memd.agent.refusals import ToolError

OUTPUT_BYTES = 30_000  # of one answer
OUTPUT_LINES = 2_000  # of one answer
LINE_CHARACTERS = 2_000  # the rest of a longer line is cut


def collect(lines: Iterable[str], problems: list[ToolError], size: int = OUTPUT_BYTES) -> str:
    """Return lines as one text, cut to the bounds of an answer with a note where it was cut.

    ``size`` is how many bytes the text may have.
    A ToolError of ``lines`` ends the text with its sentence and is appended to ``problems``.
    """
    result: list[str] = []
    bytes_left = size
    try:
        for line in map(_cut_line, lines):
            bytes_left -= len(line.encode("utf-8", "replace")) + 1
            if bytes_left < 0 or len(result) >= OUTPUT_LINES:
                result.append("[… the rest is cut; ask for less at once]")
                break
            result.append(line)
    except ToolError as error:
        problems.append(error)
        result.append(error.sentence)
    return "\n".join(result)


def _cut_line(line: str) -> str:
    """Return a line, cut to its limit with a note of how much is missing."""
    more = len(line) - LINE_CHARACTERS
    return f"{line[:LINE_CHARACTERS]} [… {more} more characters]" if more > 0 else line
