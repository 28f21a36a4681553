"""Cut a tool's answer to its limits: bytes, lines, and characters of a line. Pure."""

from collections.abc import Iterable

from memd.agent.refusals import ToolError

OUTPUT_BYTES = 30_000
OUTPUT_LINES = 2_000
LINE_CHARACTERS = 2_000


def collect(lines: Iterable[str], problems: list[ToolError], size: int = OUTPUT_BYTES) -> str:
    """Return lines as one text, cut to the bounds of an answer with a note where it was cut.

    A ToolError of ``lines`` ends the text with its sentence and is appended to ``problems``.
    """
    retained: list[str] = []
    try:
        for line in lines:
            if len(line) > LINE_CHARACTERS:
                line = f"{line[:LINE_CHARACTERS]} [… {len(line) - LINE_CHARACTERS} more characters]"  # noqa: PLW2901 - the same line, cut
            size -= len(line.encode("utf-8", "replace")) + 1
            if size < 0 or len(retained) >= OUTPUT_LINES:
                retained.append("[… the rest is cut; ask for less at once]")
                break
            retained.append(line)
    except ToolError as error:
        problems.append(error)
        retained.append(error.sentence)
    return "\n".join(retained)
