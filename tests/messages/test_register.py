"""Who is there."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from memd.core.agents import AGENTS, CHILDREN, FORGOTTEN_SECONDS, Agent, AgentState
from memd.core.errors import MemdError
from memd.messages.errors import (
    AgentEndedError,
    AgentKeyError,
    AgentNameTakenError,
    AgentNotFoundError,
    TooManyAgentsError,
)
from memd.messages.service import Register
from memd.messages.values import Registration
from tests.messages.processes import ProcessTable
from tests.support.clock import FakeClock

ANN = Registration("/p", "/m", "ann", "claude-code", session="s1")
DAY = 86_400.0


def added(register: Register, request: Registration = ANN) -> Agent:
    """Register and return the agent."""
    return register.by_key(register.register(request).key)


def state(register: Register, agent: Agent) -> AgentState:
    """Return whether an agent is there, as it is registered now."""
    known = register.get(agent.id)
    assert known is not None
    return register.state(known)


def test_a_process_is_there_as_long_as_it_runs(register: Register, processes: ProcessTable) -> None:
    """An agent with a process is gone with it, and with another process of the same number."""
    agent = added(register, replace(ANN, pid=processes.run(41)))
    assert state(register, agent) is AgentState.LIVE
    processes.run(41, began=100.5)
    assert state(register, agent) is AgentState.GONE
    processes.run(41, uid=54_321)
    assert state(register, agent) is AgentState.GONE
    processes.run(41)
    assert state(register, agent) is AgentState.LIVE
    del processes[41]
    assert state(register, agent) is AgentState.GONE


@pytest.mark.parametrize("pid", [-1, 1, 2**31, 2**40, 77])
def test_a_number_of_no_process_of_ours_is_refused(
    register: Register, processes: ProcessTable, pid: int
) -> None:
    """Nobody registers with a number that is no living process of this user."""
    processes.run(1, uid=54_321)
    with pytest.raises(MemdError, match="no process"):
        register.register(replace(ANN, pid=pid))
    assert register.agents() == ()


@pytest.mark.parametrize("jump", [DAY, -DAY])
def test_a_clock_that_is_set_moves_nobody(
    begin: Callable[[], Register], clock: FakeClock, processes: ProcessTable, jump: float
) -> None:
    """A day back or forward makes nobody there who is not, and nobody gone who is."""
    register = begin()
    there = added(register, replace(ANN, pid=processes.run(41)))
    silent = added(register, replace(ANN, name="ben", session="s2"))
    clock.jump(jump)
    assert (state(register, there), state(register, silent)) == (AgentState.LIVE, AgentState.LIVE)
    clock.advance(130)
    assert state(register, silent) is AgentState.GONE
    again = begin()
    again.load()
    clock.advance(130)
    here = (AgentState.LIVE, AgentState.IDLE)  # how long it had no turn is told by the clock
    assert state(again, there) in here
    assert state(again, silent) is AgentState.GONE


def test_who_has_no_process_is_there_while_it_calls(register: Register, clock: FakeClock) -> None:
    """Without a process an agent is there for two minutes after its last call, or connected."""
    agent = added(register)
    clock.advance(119)
    assert state(register, agent) is AgentState.LIVE
    clock.advance(2)
    assert state(register, agent) is AgentState.GONE
    open_connection = [True]
    register.attach(agent.id, lambda: open_connection[0])
    assert state(register, agent) is AgentState.LIVE
    clock.advance(400)
    assert state(register, agent) is AgentState.IDLE
    register.touch(agent.id, turn=True)
    assert state(register, agent) is AgentState.LIVE
    open_connection[0] = False
    clock.advance(400)
    assert state(register, agent) is AgentState.GONE


def test_a_name_belongs_to_who_lives(register: Register, clock: FakeClock) -> None:
    """A living holder keeps its name; a gone one loses it, and has its mailbox again later."""
    first = added(register)
    with pytest.raises(AgentNameTakenError) as caught:
        register.register(replace(ANN, session="s2"))
    assert caught.value.facts["free"] == "ann-2"
    assert "ann-2 is free" in caught.value.sentence
    clock.advance(200)
    second = added(register, replace(ANN, session="s2"))
    assert register.resolve("ann", "/p").id == second.id
    with pytest.raises(AgentNameTakenError):
        register.register(ANN)
    back = added(register, replace(ANN, name="ann-2"))
    assert (back.id, back.displaced) == (first.id, False)


def test_a_key_is_the_newest_one(
    begin: Callable[[], Register], register: Register, tmp_path: Path
) -> None:
    """The same session gets a new key, the old one is void, and no key is in the state file."""
    old, new = register.register(ANN).key, register.register(ANN).key
    assert len(new) >= 43
    with pytest.raises(AgentKeyError):
        register.by_key(old)
    assert begin().by_key(new).name == "ann"
    with sqlite3.connect(tmp_path / "state.db") as reader:
        dump = "\n".join(reader.iterdump())
    reader.close()
    assert new not in dump
    for guess in ("", new[:-1], new + "x", "\ud800"):
        with pytest.raises(AgentKeyError):
            register.by_key(guess)


def test_a_session_is_registered_anew_by_its_own_processes(
    register: Register, processes: ProcessTable
) -> None:
    """A stranger who knows a running session's id or process gets no key, and no bridge's voice."""
    client, tool, launcher = processes.run(10), processes.run(11, parent=10), processes.run(9)
    processes[client] = replace(processes[client], parent=launcher)
    stranger = processes.run(20)
    theirs = replace(ANN, pid=client)
    key = register.register(theirs).key
    for pid in (0, stranger):
        with pytest.raises(AgentNameTakenError):
            register.register(replace(theirs, pid=pid, caller=stranger))
    with pytest.raises(MemdError, match="no process"):
        register.register(Registration("/p", "/m", "eve", pid=client, caller=stranger))
    with pytest.raises(MemdError, match="no process"):  # one that has no agent yet
        register.register(Registration("/p", "/m", "eve", pid=launcher, caller=stranger))
    assert register.by_key(key).pid == client
    for caller in (0, client, tool, launcher):
        key = register.register(replace(theirs, caller=caller)).key
    assert register.by_key(key).pid == client
    del processes[client]
    assert register.register(replace(ANN, caller=stranger)).agent == "ann"


@pytest.mark.parametrize("caller", [20, -1])
@pytest.mark.parametrize("changed", [{"root": "/q"}, {"name": "eve"}, {"name": ""}])
def test_nobody_takes_a_running_session_from_elsewhere(
    register: Register, processes: ProcessTable, caller: int, changed: dict[str, Any]
) -> None:
    """A stranger in another project, or under another name, does not stand for a session."""
    theirs = added(register, replace(ANN, pid=processes.run(10)))
    processes.run(20)
    with pytest.raises(AgentNameTakenError):
        register.register(replace(ANN, caller=caller, **changed))
    assert register.by_session("claude-code", "s1") == theirs
    assert len(register.agents()) == 1


def test_a_child_comes_with_its_parent_s_key(register: Register) -> None:
    """Who has no key of the parent is not its child; with the parent its children end."""
    parent = register.register(ANN)
    with pytest.raises(AgentKeyError):
        register.register(replace(ANN, name="kid", session="", parent="ann", key="guessed"))
    kid = register.register(replace(ANN, name="kid", session="", parent="ann", key=parent.key))
    assert kid.address == "ann/kid"
    assert register.resolve("ann/kid", "/p").name == "kid"
    register.end(register.by_key(parent.key).id)
    for key in (parent.key, kid.key):
        with pytest.raises(AgentEndedError):
            register.by_key(key)
    with pytest.raises(AgentEndedError):
        register.resolve("ann/kid", "/p")


def test_an_address_of_nobody_names_those_that_are_like_it(register: Register) -> None:
    """An unknown address is an error with the nearest names, in the words of who asks."""
    added(register)
    for address, root, near in (("anna", "/p", "ann"), ("ann", "/q", "ann@-p")):
        with pytest.raises(AgentNotFoundError) as caught:
            register.resolve(address, root)
        assert caught.value.facts["nearest"] == near
    assert register.resolve("ann@-p", "/q").name == "ann"


def test_a_project_is_named_by_its_folder(register: Register) -> None:
    """The folder's name will do where one project has it; of two neither is taken."""
    for root in ("/src/my_app", "/src/web"):
        added(register, replace(ANN, root=root, session=f"s {root}"))
    assert register.resolve("ann@my_app", "/q").root == "/src/my_app"
    assert register.resolve("ann@-src-my-app", "/q").root == "/src/my_app"
    added(register, replace(ANN, root="/other/my_app", session="s3"))
    with pytest.raises(AgentNotFoundError) as caught:
        register.resolve("ann@my_app", "/q")
    assert "ann@-src-my-app" in str(caught.value)


def test_there_are_only_so_many(register: Register, clock: FakeClock) -> None:
    """500 agents and 64 children of one are the most; ended ones are forgotten after a day."""
    key = register.register(ANN).key
    for number in range(CHILDREN):
        register.register(replace(ANN, name=f"k{number}", session="", parent="ann", key=key))
    with pytest.raises(TooManyAgentsError):
        register.register(replace(ANN, name="more", session="", parent="ann", key=key))
    for number in range(AGENTS - CHILDREN - 1):
        register.register(Registration("/q", "/n", f"a{number}"))
    with pytest.raises(TooManyAgentsError):
        register.register(Registration("/q", "/n", "more"))
    register.end(register.resolve("ann", "/p").id)
    clock.advance(FORGOTTEN_SECONDS + 1)
    register.forget()
    assert len(register.agents()) == AGENTS - CHILDREN - 1
    assert register.by_session("claude-code", "s1") is None


def test_the_nearest_ancestor_speaks(register: Register, processes: ProcessTable) -> None:
    """A bridge speaks for the agent whose process started it, however many lie between."""
    outer = added(register, replace(ANN, pid=processes.run(10)))
    inner = added(register, replace(ANN, name="in", session="s2", pid=processes.run(20, parent=10)))
    processes.run(30, parent=20)
    processes.run(31, parent=30)
    processes.run(40, parent=10)
    speakers = [register.by_process(pid) for pid in (31, 40, 10, 99)]
    assert [each and each.id for each in speakers] == [inner.id, outer.id, None, None]
    processes.run(20, parent=10, began=500.0)
    again = register.by_process(31)
    assert again is not None
    assert again.id == outer.id


@pytest.mark.parametrize("column", ["began", "pid", "parent", "seen"])
def test_a_damaged_row_harms_no_other(
    begin: Callable[[], Register], register: Register, tmp_path: Path, column: str
) -> None:
    """A row that makes no sense is passed over, and the others are there."""
    added(register)
    added(register, replace(ANN, name="ben", session="s2"))
    with sqlite3.connect(tmp_path / "state.db") as writer:
        writer.execute("CREATE TABLE loose AS SELECT * FROM agents")
        writer.execute("DROP TABLE agents")
        writer.execute("ALTER TABLE loose RENAME TO agents")
        writer.execute(f"UPDATE agents SET {column} = 'x' WHERE name = 'ann'")  # noqa: S608 - ours
    writer.close()
    assert [agent.name for agent in begin().agents()] == ["ben"]


def test_who_is_absent_makes_room(register: Register, processes: ProcessTable) -> None:
    """Where there is no room, the longest gone without mail is forgotten, and nobody else."""
    mail: set[int] = set()
    register.has_mail = mail.__contains__
    for number in range(AGENTS):
        pid = processes.run(number + 2)
        register.register(Registration("/p", "/m", f"a{number}", pid=pid))
    with pytest.raises(TooManyAgentsError):
        register.register(ANN)
    del processes[7], processes[8]  # of a5 and a6
    mail.add(register.resolve("a5", "/p").id)
    assert added(register).name == "ann"
    assert register.resolve("a5", "/p").name == "a5"
    with pytest.raises(AgentNotFoundError):
        register.resolve("a6", "/p")
    with pytest.raises(TooManyAgentsError):
        register.register(replace(ANN, name="ben", session="s2"))


def test_children_that_are_gone_make_room(register: Register, clock: FakeClock) -> None:
    """A session that has had its 64 sub-agents gets another one in the place of a gone one."""
    register.has_mail = lambda _: False
    key = register.register(ANN).key
    kid = replace(ANN, session="", parent="ann", key=key)
    for number in range(CHILDREN):
        register.register(replace(kid, name=f"k{number}"))
    with pytest.raises(TooManyAgentsError):
        register.register(replace(kid, name="more"))
    clock.advance(200)
    assert register.register(replace(kid, name="more")).address == "ann/more"
    assert len(register.children(register.by_key(key).id)) == CHILDREN


def test_who_is_absent_for_a_week_is_forgotten(
    begin: Callable[[], Register], clock: FakeClock
) -> None:
    """Gone for a week and without mail; who called since, or has mail, is there after a restart."""
    register = begin()
    mail = {added(register, replace(ANN, name="ben", session="s2")).id}
    caller = register.register(replace(ANN, name="cat", session="s3")).key
    added(register)
    for again in (register, begin()):
        again.has_mail = mail.__contains__
        clock.advance(4 * DAY)
        again.by_key(caller)
        again.forget()
    assert [agent.name for agent in begin().agents()] == ["ben", "cat"]


def test_who_has_no_session_is_its_name(register: Register, clock: FakeClock) -> None:
    """A program that is started again has its mailbox again, and no other kind of program has."""
    bot = Registration("/p", "/m", "bot", "script")
    first = register.register(bot)
    agent = register.by_key(first.key)
    with pytest.raises(AgentNameTakenError):
        register.register(bot)
    clock.advance(200)
    assert added(register, bot).id == agent.id
    clock.advance(200)
    other = added(register, replace(bot, client="another"))
    assert other.id != agent.id
    register.end(other.id)
    assert added(register, bot).id not in {agent.id, other.id}


def test_who_lost_its_name_is_not_taken_for_its_holder(
    register: Register, clock: FakeClock
) -> None:
    """Whom another agent displaced is shown apart, and nothing sent to the name comes to it."""
    old = register.register(ANN)
    register.register(replace(ANN, name="kid", session="", parent="ann", key=old.key))
    clock.advance(200)
    new = register.register(replace(ANN, session="s2"))
    kid = replace(ANN, name="kid", session="", parent="ann", key=new.key)
    newest = added(register, kid)
    assert register.resolve("ann/kid", "/p").id == newest.id
    shown = register.address(register.by_key(old.key), "/p")
    assert shown != "ann"
    with pytest.raises(MemdError):
        register.resolve(shown, "/p")


def test_a_sub_agent_is_there_while_its_session_s_process_runs(
    register: Register, processes: ProcessTable, clock: FakeClock
) -> None:
    """A sub-agent in a session has no process of its own: a long tool run does not end it."""
    added(register, replace(ANN, pid=processes.run(41)))
    kid = added(register, replace(ANN, name="kid", parent="ann", child="a1"))
    clock.advance(1_000)
    assert state(register, kid) is AgentState.IDLE
    del processes[41]
    assert state(register, kid) is AgentState.GONE
