"""A proposal as a person looks at it."""

from memd.core.text import sha256
from memd.review.view import paths, views
from memd.state.proposals import Proposal
from memd.state.proposed import ProposedEdit

OLD, NEW = b"old\n", b"new\n"


def proposal(*edits: ProposedEdit) -> Proposal:
    """Return an open proposal."""
    return Proposal("p1", "/m", 1.0, problems=("p",), edits=edits)


def changed(path: str, state: str = "open", before: bytes | None = OLD) -> ProposedEdit:
    """Return an edit from old to new."""
    return ProposedEdit(path, NEW, sha256(OLD), before, state=state)


def test_each_file_is_shown_with_what_would_become_of_it() -> None:
    """Action, diff and reason are those of the edit; a file that changed since is stale."""
    results = proposal(
        changed("a.md"),
        ProposedEdit("b.md", None, sha256(OLD), OLD, "twice", "a.md"),
        ProposedEdit("c.md", NEW),
        changed("d.md", "accepted"),
    )
    live = {"a.md": OLD, "b.md": b"mine", "d.md": NEW}
    assert paths([results, results]) == ("a.md", "b.md", "c.md", "d.md")
    (view,) = views([results], live)
    assert view.problems == ("p",)
    assert [(file.action, file.stale) for file in view.files] == [
        ("changed", False),
        ("removed", True),
        ("created", False),
        ("changed", False),
    ]
    assert (view.files[1].reason, view.files[1].merged_into) == ("twice", "a.md")
    assert "-old\n+new\n" in view.files[0].diff


def test_what_the_dream_had_read_may_be_the_live_file() -> None:
    """Where an older memd kept no text, the diff begins with the live one if it is the same."""
    results = proposal(changed("a.md", before=None))
    (view,) = views([results], {"a.md": OLD})
    assert "-old\n+new\n" in view.files[0].diff
    (view,) = views([results], {"a.md": b"mine"})
    assert "-" not in view.files[0].diff.split("@@")[-1]


def test_a_damaged_proposal_is_told_as_such() -> None:
    """It has no files and a sentence."""
    damaged = Proposal("p1", "/m", 1.0, edits=None)
    (view,) = views([damaged], {})
    assert view.files == ()
    assert "can only be rejected" in view.problems[0]
    assert paths([damaged]) == ()


def test_an_answer_has_bounds() -> None:
    """Files and diffs for which there is no room are told, not sent."""
    many = proposal(*(ProposedEdit(f"n{n}.md", b"") for n in range(1500)))
    first, second = views([many, many], {})
    assert (len(first.files), len(second.files)) == (1500, 500)
    assert second.problems[-1] == "1000 more files have no room in this answer"
    large = b"".join(b"line %d of a large memory\n" % n for n in range(1900)) * 2
    wide = proposal(*(ProposedEdit(f"n{n}.md", large) for n in range(20)))
    (view,) = views([wide], {})
    assert sum(len(file.diff) for file in view.files) < 520_000
    assert "look at this proposal alone" in view.files[-1].diff


def test_a_name_cannot_pose_as_a_line() -> None:
    """A name from a damaged row stays on its line."""
    (view,) = views([proposal(ProposedEdit("a\n+evil", b"y\n"))], {})
    assert view.files[0].diff.splitlines()[1] == "+++ b/a\\n+evil"
