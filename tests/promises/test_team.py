"""Team memory through two daemons and a server: what no order of events may do.

The sample of ``make test`` tries a part of the messages that are lost; ``-m soak`` all.
"""

from collections.abc import Callable, Iterator

import pytest
from anyio.from_thread import start_blocking_portal

from memd.base.errors import MemdError
from memd.server import accepting
from tests.soak.figures import FIGURE
from tests.team.desks import Desk
from tests.team.machine import body
from tests.team.relay import FAULTS
from tests.team.worlds import World, world

Record = Callable[[str, object], None]
DAY = 86400.0
OPERATIONS: dict[str, tuple[str, dict[str, str]]] = {
    "pull": ("team.sync", {}),
    "push": ("team.sync", {}),
    "remove": ("team.remove", {"reason": "outdated"}),
    "restore": ("team.resolve", {"how": "restore"}),
}


@pytest.fixture
def here() -> Iterator[World]:
    """Set up two members who have joined."""
    with start_blocking_portal() as portal, world(portal) as made:
        made.join_all()
        yield made


def sync(*desks: Desk) -> None:
    """Let members sync until they are equal."""
    for _ in range(3):
        for desk in desks:
            desk.clock.advance(3600)
            desk.call("team.sync")


def attempt(desk: Desk, method: str, **params: str) -> bool:
    """Call a method and say whether it was done."""
    try:
        desk.call(method, **params)
    except MemdError as error:
        if error.kind not in {"team_unreachable", "team_refused"}:
            raise
        return False
    return True


class Trial:
    """One operation of Anna's on memories of its own, at one message of which something happens."""

    def __init__(self, here: World, operation: str, number: int) -> None:
        self.here = here
        self.operation = operation
        self.anna, self.bert = here.desks["anna"], here.desks["bert"]
        self.keys = [f"{name}{number}.md" for name in "abc"]
        changed, gone, _ = self.keys
        here.tick()
        for key in (changed, gone):
            self.anna.write(key, body(key, (1, 1)))
        self.anna.call("team.sync")
        if operation == "restore":
            self.anna.call("team.remove", path=f"team/{gone}", reason="outdated")
        self.bert.call("team.sync")

    def wrong(self, place: int, word: str) -> str:
        """Let it happen, then let both rest; return what is not as promised."""
        changed, gone, new = self.keys
        wanted = {changed: body(changed, (2, 1)), new: body(new, (1, 1)), gone: body(gone, (1, 1))}
        writer = self.bert if self.operation == "pull" else self.anna
        if self.operation in {"pull", "push"}:
            for key in (changed, new):
                writer.write(key, wanted[key])
        else:
            wanted |= {changed: body(changed, (1, 1))}
            del wanted[new]
        if self.operation == "pull":
            self.bert.call("team.sync")
        method, params = OPERATIONS[self.operation]
        place_of = {"path": f"team/{gone}"} if params else {}
        plan = self.anna.relay.plan
        plan.extend([*["pass"] * place, word])
        done = attempt(self.anna, method, **place_of, **params)
        plan.clear()
        sync(self.anna, self.bert)
        self.anna.relay.release()
        sync(self.anna, self.bert)
        texts = {k: text for k, text in self.anna.texts().items() if k in self.keys}
        without = {key: text for key, text in wanted.items() if key != gone}
        sides = {"remove": (wanted, without), "restore": (without, wanted)}
        before, after = sides.get(self.operation, (wanted, wanted))
        hashes = [
            (each.key, each.hash) for each in self.here.versions() if each.key in (changed, new)
        ]
        checks = {
            "neither before nor after": texts not in (before, after),
            "acknowledged and lost": done and texts != after,
            "the members differ": self.anna.texts() != self.bert.texts(),
            "it was written twice": len(hashes) != len(set(hashes)),
            "something is held": any(
                self.here.desks[who].call("team.status")[what]
                for who in ("anna", "bert")
                for what in ("held", "conflicts")
            ),
        }
        return "; ".join(words for words, bad in checks.items() if bad)


@pytest.mark.parametrize("stride", [37, pytest.param(1, marks=pytest.mark.soak)])
def test_any_message_may_be_lost(here: World, stride: int, record_property: Record) -> None:
    """Whatever happens to a message of an operation: before or after, once, equal, no text lost."""
    places = ((name, n, word) for name in OPERATIONS for n in range(4) for word in FAULTS)
    tried = list(places)[::stride]
    bad = []
    for number, (name, place, word) in enumerate(tried):
        if wrong := Trial(here, name, number).wrong(place, word):
            bad.append((name, place, word, wrong))
    record_property(FIGURE, f"team: {len(tried)} messages that met a fault, {len(bad)} bad")
    assert bad == []


def test_a_device_that_was_away_resurrects_nothing(here: World) -> None:
    """After 401 days the mark is too old: what the others removed is held, not sent, not lost."""
    anna, bert = here.desks.values()
    for key in ("a.md", "b.md", "c.md"):
        anna.write(key, body(key, (1, 1)))
    sync(anna, bert)
    bert.stop()
    here.server.storage.bounds = accepting.Bounds(tombstones=0)
    for key in ("a.md", "b.md"):
        anna.call("team.remove", path=f"team/{key}", reason="outdated")
    anna.write("c.md", body("c.md", (2, 1)))
    anna.write("d.md", body("d.md", (1, 1)))
    sync(anna)
    here.clock.now += 401 * DAY
    bert.start()
    bert.clock.jump(401 * DAY)
    bert.save("b.md", body("b.md", (1, 3)))
    before = here.versions()
    attempt(bert, "team.sync")  # its token has expired by then
    for each in (anna, bert):
        here.join(each.name)
    sync(bert, anna, bert)
    assert here.versions() == before
    status = bert.call("team.status")
    assert {row["key"]: row["reason"] for row in status["held"]} == {
        "a.md": "only_here",
        "b.md": "only_here",
    }
    assert anna.texts() == {"c.md": body("c.md", (2, 1)), "d.md": body("d.md", (1, 1))}
    held = {"a.md": body("a.md", (1, 1)), "b.md": body("b.md", (1, 3))}
    assert bert.texts() == anna.texts() | held


def test_a_restored_backup_removes_nothing(here: World) -> None:
    """Members wait for their users; then what the backup lacks is sent again, and all are equal."""
    anna, bert = here.desks.values()
    for number in range(12):
        anna.write(f"old{number}.md", body("old", (number, 1)))
    sync(anna, bert)
    backup = here.backup()
    for number in range(6):
        bert.write(f"new{number}.md", body("new", (number, 1)))
        anna.write(f"old{number}.md", body("old", (number, 2)))
    sync(anna, bert)
    here.restore(backup)
    everything = anna.texts()
    assert len(everything) == 18
    for desk in (anna, bert):
        desk.clock.advance(3600)
        attempt(desk, "team.sync")
        assert desk.call("team.status")["state"] == "waits"
        assert desk.texts() == everything
    assert {each.key for each in here.versions()} == {f"old{n}.md" for n in range(12)}
    for desk in (anna, bert):
        desk.call("team.resolve", how="accept")
    sync(anna, bert)
    assert (anna.texts(), bert.texts()) == (everything, everything)
    assert {each.key for each in here.versions()} == set(everything)
    for desk in (anna, bert):
        status = desk.call("team.status")
        assert (status["state"], status["held"], status["conflicts"]) == ("equal", [], [])


def test_clocks_may_be_years_apart(here: World) -> None:
    """Which text is newer is no question of a clock: what each member does arrives all the same."""
    anna, bert = here.desks.values()
    anna.clock.jump(-20 * 365 * DAY)
    bert.clock.jump(20 * 365 * DAY)
    for number in (1, 2):
        anna.write("a.md", body("a.md", (number, number)))
        sync(anna, bert)
        bert.write("a.md", body("a.md", (number, number + 1)))
        bert.write(f"b{number}.md", body("b", (number, 1)))
        sync(bert, anna)
        assert anna.texts() == bert.texts()
        anna.call("team.remove", path=f"team/b{number}.md", reason="outdated")
        sync(anna, bert)
        assert set(bert.texts()) == {"a.md"}
        anna.clock.jump(7 * 365 * DAY)
        bert.clock.jump(-9 * 365 * DAY)
