"""What the journal shows of words that an archive brought."""

from memd.cli.commands.journal import _author


def test_nobodys_words_steer_a_terminal() -> None:
    """Control characters and changes of direction in a history from an archive are escaped."""
    shown = _author({"actor": "per\x1b[31mson", "client": "\x1b]0;own\x07\u202e"})
    assert shown == r"per\x1b[31mson (\x1b]0;own\x07\u202e)"
