"""The storage beside a small model of it: requests in any order, on both databases."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from memd.server.accepting import DAY, REQUESTS
from memd.server.errors import TeamServerError
from memd.server.values import Answer, Role
from tests.server.desk import Desk, entry, memory, new_id

KEYS = ("a.md", "b.md", "x/a.md", "A.md")
ROLES = {"anna": Role.MEMBER, "ben": Role.MEMBER, "mia": Role.MAINTAINER, "rob": Role.READER}
keys, members = st.sampled_from(KEYS), st.sampled_from(tuple(ROLES))
texts = st.sampled_from(("one", "two", "three"))
revisions = st.integers(0, 8)
bases = revisions | st.none()
writes = st.dictionaries(keys, st.tuples(texts, bases), min_size=1, max_size=3)


@dataclass(frozen=True)
class Known:
    """A version as the model has it; a tombstone has no text."""

    revision: int
    text: str | None
    member: str


@dataclass
class Model:
    """What a repository has to be. What is refused has a kind, what is done has none."""

    versions: dict[str, list[Known]] = field(default_factory=dict)
    revision: int = 0

    def head(self, key: str) -> Known | None:
        """Return what a key is now."""
        return self.versions[key][-1] if key in self.versions else None

    def live(self) -> dict[str, str]:
        """Return the texts of the live entries."""
        heads = {key: versions[-1].text for key, versions in self.versions.items()}
        return {key: text for key, text in heads.items() if text is not None}

    def put(self, member: str, sent: dict[str, tuple[str, int | None]]) -> str:
        """Write entries, or return why not."""
        if member == "rob":
            return "role"
        live = self.live()
        new = {key: text for key, (text, _) in sent.items() if live.get(key) != text}
        for key in new:
            head = self.head(key)
            if sent[key][1] != (head.revision if head else None):
                return "changed"
        spelled = [key.lower() for key in {*live, *new}]
        if len(set(spelled)) < len(spelled):
            return "refused"
        self.revision += bool(new)
        for key, text in new.items():
            self.versions.setdefault(key, []).append(Known(self.revision, text, member))
        return ""

    def remove(self, member: str, key: str, revision: int) -> str:
        """Remove an entry, or return why not."""
        head = self.head(key)
        if member == "rob":
            return "role"
        if head is None:
            return "not_found"
        if head.text is None or head.revision != revision:
            return "changed"
        life: list[Known] = []
        for version in self.versions[key]:
            life = [*life, version] if version.text is not None else []
        if member not in (life[0].member, "mia"):
            return "role"
        self.revision += 1
        self.versions[key].append(Known(self.revision, None, member))
        return ""


class Machine(RuleBasedStateMachine):
    """Requests to one repository, each judged by the model."""

    owner: ClassVar[Desk]

    def __init__(self) -> None:
        super().__init__()
        desk = self.owner
        remote = f"github.com/acme/{len(desk.storage.all_repositories())}"
        repository = desk.storage.add_repository(remote)
        for member, role in ROLES.items():
            desk.storage.grant(member, repository.id, role)
        self.desk = replace(desk, repository=repository)
        self.model = Model()
        self.accepted: list[tuple[Callable[[], Answer], Answer]] = []

    def attempt(self, expected: str, request: Callable[[], Answer]) -> None:
        """Send a request that is refused as the model says, or accepted and remembered."""
        if expected:
            with pytest.raises(TeamServerError) as error:
                request()
            assert error.value.kind == expected
            return
        answer = request()
        assert answer["revision"] == self.model.revision
        self.accepted.append((request, answer))

    @rule(member=members, sent=writes)
    def put(self, member: str, sent: dict[str, tuple[str, int | None]]) -> None:
        """Write entries on bases that are right or wrong."""
        number = new_id()
        entries = [entry(key, text, base) for key, (text, base) in sent.items()]
        expected = self.model.put(member, sent)
        self.attempt(expected, lambda: self.desk.put(member, *entries, number=number))

    @rule(member=members, key=keys, text=texts)
    def edit(self, member: str, key: str, text: str) -> None:
        """Write an entry on what it is."""
        head = self.model.head(key)
        self.put(member, {key: (text, head.revision if head else None)})

    @rule(member=members, key=keys, revision=revisions | st.none())
    def remove(self, member: str, key: str, revision: int | None) -> None:
        """Remove an entry as it is, or another revision of it."""
        self.desk.now += DAY / 4  # so that nobody removes too fast
        number, head = new_id(), self.model.head(key)
        seen = revision if revision is not None else head.revision if head else 1
        expected = self.model.remove(member, key, seen)
        self.attempt(expected, lambda: self.desk.remove(member, key, seen, number=number))

    @rule(place=st.integers(0, 20))
    def repeat(self, place: int) -> None:
        """Send an accepted request again: the answer is the first one, nothing else happens."""
        recent = self.accepted[-REQUESTS:]
        if recent:
            request, answer = recent[place % len(recent)]
            assert request() == answer

    @rule(revision=revisions, size=st.integers(1, 3))
    def pull(self, revision: int, size: int) -> None:
        """Read the pages since a mark: each key that changed later, once, as it is."""
        storage, repository = self.desk.storage, self.desk.repository
        seen: list[tuple[str, int]] = []
        cursor: str | None = ""
        while cursor is not None:
            page = storage.page(repository.id, f"{repository.epoch}.{revision}", cursor, size)
            seen += [(each.key, each.revision) for each in (*page.entries, *page.removed)]
            cursor = page.next
        heads = {key: versions[-1].revision for key, versions in self.model.versions.items()}
        assert sorted(seen) == sorted(item for item in heads.items() if item[1] > revision)

    @invariant()
    def equals_the_model(self) -> None:
        """Have the live entries, the revision and every version of the model."""
        expected = {key: memory(text) for key, text in self.model.live().items()}
        assert self.desk.live() == expected
        assert self.desk.revision() == self.model.revision
        for key in KEYS:
            history = self.desk.storage.history(self.desk.repository.id, key, maintainer=True)
            known = self.model.versions.get(key, [])
            assert [(each.revision, each.content, each.member) for each in reversed(history)] == [
                (each.revision, each.text and memory(each.text), each.member) for each in known
            ]

    def teardown(self) -> None:
        """Keep the time for the next repository, since removals are counted in all of them."""
        self.owner.now = self.desk.now


def explore(desk: Desk, examples: int) -> None:
    """Run the machine, each time on a repository of its own."""
    for member in ROLES:
        desk.join(member)
    Machine.owner = desk
    run_state_machine_as_test(
        Machine, settings=settings(max_examples=examples, stateful_step_count=30)
    )
    assert desk.damage() == []


def test_any_order_of_requests_is_as_the_model(desk: Desk) -> None:
    """Each request of any order is answered as the model says, and leaves what the model has."""
    explore(desk, 15)


@pytest.mark.soak
def test_many_orders_of_requests_are_as_the_model(desk: Desk) -> None:
    """The same with 15,000 steps."""
    explore(desk, 500)
