"""What makes a line of progress, and the line of a tool's call. Pure."""

_CHARACTERS = 60
_WORDS = (2, 6)


def is_line(text: str) -> bool:
    """Say whether a text is a line: 2 to 6 words, at most 60 characters, an -ing form first."""
    words = text.split()
    fits = len(text) <= _CHARACTERS and _WORDS[0] <= len(words) <= _WORDS[1]
    return fits and "\n" not in text and words[0].endswith("ing")
