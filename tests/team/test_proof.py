"""The proof of team memory notices each promise that is broken, and lets pass what is allowed."""

import pytest

from tests.team.proof import BrokenPromiseError, Held, Proof, Version

ONE, GONE = Version("a.md", 1, "h1", "anna"), Version("a.md", 2, "", "anna")


@pytest.fixture
def proof() -> Proof:
    """Return a proof of one entry that two members have."""
    made = Proof()
    made.wrote("anna", "h1")
    made.files("anna", {"a.md": "h1"}, knows=0, stored={"h1"})
    made.history([ONE])
    made.files("bert", {"a.md": "h1"}, knows=1, stored=())
    made.rest({"anna": Held(), "bert": Held()})
    return made


def test_a_version_must_not_leave_the_history(proof: Proof) -> None:
    """What the server once had it has for ever, unless a backup was put in its place."""
    with pytest.raises(BrokenPromiseError, match="left"):
        proof.history([])
    proof.replaced([])
    proof.history([])


def test_a_tombstone_needs_a_remove(proof: Proof) -> None:
    """Nothing is removed on the server that nobody removed, and one request removes once."""
    with pytest.raises(BrokenPromiseError, match="nobody removed"):
        proof.history([ONE, GONE])
    proof.acted("anna", "a.md", "remove")
    proof.history([ONE, GONE])
    with pytest.raises(BrokenPromiseError, match="nobody removed"):
        proof.history([ONE, GONE, Version("a.md", 3, "", "anna")])


def test_a_file_is_taken_by_a_tombstone_alone(proof: Proof) -> None:
    """A member's file goes when its very text was removed, or its own user took it."""
    with pytest.raises(BrokenPromiseError, match="nobody took"):
        proof.files("bert", {}, knows=1, stored=())
    proof.acted("anna", "a.md", "remove")
    proof.history([ONE, GONE])
    proof.files("bert", {"a.md": "newer"}, knows=1, stored=())
    with pytest.raises(BrokenPromiseError, match="nobody took"):
        proof.files("bert", {}, knows=2, stored=())
    proof.step += 1
    proof.acted("bert", "a.md", "drop")
    proof.files("bert", {}, knows=2, stored=())


def test_what_was_removed_returns_by_decision_alone(proof: Proof) -> None:
    """A text from before the tombstone needs an act; one that was written after it needs none."""
    proof.acted("anna", "a.md", "remove")
    proof.files("bert", {"a.md": "old"}, knows=1, stored=())
    proof.history([ONE, GONE])
    back = Version("a.md", 3, "old", "bert")
    with pytest.raises(BrokenPromiseError, match="came back"):
        proof.history([ONE, GONE, back])
    proof.acted("bert", "a.md", "keep")
    proof.history([ONE, GONE, back])
    fresh = Version("a.md", 3, "new", "bert")
    proof.replaced([ONE, GONE])
    proof.acts.clear()
    proof.files("bert", {"a.md": "new"}, knows=2, stored=())
    proof.history([ONE, GONE, fresh])


def test_an_old_text_needs_a_decision(proof: Proof) -> None:
    """A request that arrives twice, or late, puts no older text on top of a newer one."""
    newer, again = Version("a.md", 2, "h2", "bert"), Version("a.md", 3, "h1", "anna")
    with pytest.raises(BrokenPromiseError, match="once more"):
        proof.history([ONE, newer, again])
    proof.acted("bert", "a.md", "undo")
    proof.history([ONE, newer, again])


def test_a_written_text_is_somewhere(proof: Proof) -> None:
    """What a member wrote is live there or in its journal."""
    proof.files("anna", {"a.md": "h2"}, knows=1, stored={"h1"})
    with pytest.raises(BrokenPromiseError, match="nowhere"):
        proof.files("anna", {"a.md": "h2"}, knows=1, stored=())


def test_nobody_is_in_conflict_with_themselves(proof: Proof) -> None:
    """One's own write that comes back as a stranger's was pulled before its answer."""
    proof.conflicts("anna", {"a.md": "bert"})
    with pytest.raises(BrokenPromiseError, match="own writer"):
        proof.conflicts("anna", {"a.md": "anna"})
    proof.replaced([])
    proof.conflicts("anna", {"a.md": "anna"})


def test_at_rest_all_are_equal(proof: Proof) -> None:
    """A difference that is not listed as held is none that may be."""
    proof.files("bert", {"a.md": "h1", "b.md": "x"}, knows=1, stored=())
    with pytest.raises(BrokenPromiseError, match="not held"):
        proof.rest({"anna": Held(), "bert": Held()})
    proof.rest({"anna": Held(), "bert": Held(held=frozenset({"b.md"}))})
