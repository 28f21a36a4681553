"""What a model may look at."""

from pathlib import Path

import pytest

from memd.agent import view as seeing
from memd.agent.places import MEMORY
from memd.agent.refusals import LimitError, NotReachableError, WrongKindError
from memd.agent.view import CALL_BYTES, CALL_FILES, AgentView, Meter, TextPiece
from memd.core.yielding import yielding
from tests.agent.home import NOW, TOKEN, Home, never


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Return a home."""
    return Home(tmp_path)


def test_outside_text_is_shown_without_credentials() -> None:
    """Text from elsewhere loses its credentials, a memory keeps its text, hidden signs show."""
    foreign = TextPiece(f"a {TOKEN}\nb", foreign=True)
    assert foreign.lines() == ["a [secret: github-token]", "b"]
    assert TextPiece("\u202eb", foreign=True).lines() == ["<U+202E>b"]
    assert foreign.count() == 2
    assert TOKEN in TextPiece(TOKEN, foreign=False).text
    assert TextPiece("", foreign=False).lines() == []


def test_a_call_has_bounds() -> None:
    """Bytes, files and time end a call."""
    with pytest.raises(LimitError, match="MB"):
        Meter(never).count_bytes(CALL_BYTES + 1)
    with pytest.raises(LimitError, match="files"):
        Meter(never).count_files(CALL_FILES + 1)
    with pytest.raises(LimitError, match="time"):
        Meter(lambda: True).tick()


def test_a_large_file_comes_in_pieces(home: Home) -> None:
    """Up to a size a file is one piece, so that a credential of several lines is seen whole."""
    (home.project / "small.txt").write_bytes(b"x\n" * 500_000)
    (home.project / "large.txt").write_bytes(b"x\n" * 3_000_000)
    with home.view() as view:
        assert len(list(view.pieces(view.file(f"{home.project}/small.txt")))) == 1
        large = list(view.pieces(view.file(f"{home.project}/large.txt")))
    assert len(large) > 1
    assert sum(piece.count() for piece in large) == 3_000_000


def test_prompts_go_first_between_two_files(home: Home) -> None:
    """Each file of a folder is followed by a moment for others, and by a look at the time."""
    folder = home.memory / "many"
    folder.mkdir()
    for number in range(30):
        (folder / f"m{number}.md").write_text("x", encoding="utf-8")
    requested: list[int] = []
    ticks = 0

    def over() -> bool:
        nonlocal ticks
        ticks += 1
        return ticks > 20

    roots = (seeing.root_of(MEMORY, str(home.memory)),)
    folders = seeing.open_roots(roots)
    with yielding(lambda: requested.append(1)), folders[roots[0].real]:
        sight = AgentView(roots, folders, {}, {}, meter=Meter(over), now=NOW)
        with pytest.raises(LimitError):
            sight.children(sight.entry("many"))
    assert len(requested) >= 30 + 20


def test_kinds_are_not_mixed_up(home: Home) -> None:
    """A folder is no file and a file no folder."""
    with home.view() as view:
        with pytest.raises(WrongKindError):
            view.file("sub")
        with pytest.raises(WrongKindError):
            view.children(view.entry("a.md"))
        with pytest.raises(NotReachableError):
            view.entry("link_out.md")
