"""Who is there."""

import os
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from memd.base.agents import CHILDREN, Agent, AgentState, SystemProcess
from memd.base.errors import Conflict, MemdError, TooLarge
from memd.messages.service import Register
from memd.messages.values import Registration
from tests.messages.processes import ProcessTable
from tests.support.clock import FakeClock

ANN = Registration("/p", "/m", "ann", "claude-code", session="s1")
DAY = 86_400.0


def key(register: Register, request: Registration = ANN) -> str:
    """Register an agent and return its key."""
    return register.register(request)[0].key


def added(register: Register, request: Registration = ANN) -> Agent:
    """Register and return the agent."""
    return register.by_key(key(register, request))


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


def test_a_session_is_registered_anew_by_its_own_processes(
    register: Register, processes: ProcessTable
) -> None:
    """A stranger who knows a running session's id or process gets no key, and no bridge's voice."""
    client, tool, launcher = processes.run(10), processes.run(11, parent=10), processes.run(9)
    processes[client] = replace(processes[client], parent=launcher)
    stranger = processes.run(20)
    theirs = replace(ANN, pid=client)
    given = key(register, theirs)
    for pid in (0, stranger):
        with pytest.raises(Conflict):
            register.register(replace(theirs, pid=pid, caller=stranger))
    with pytest.raises(MemdError, match="no process"):
        register.register(Registration("/p", "/m", "eve", pid=client, caller=stranger))
    with pytest.raises(MemdError, match="no process"):  # one that has no agent yet
        register.register(Registration("/p", "/m", "eve", pid=launcher, caller=stranger))
    assert register.by_key(given).pid == client
    for caller in (0, client, tool, launcher):
        given = key(register, replace(theirs, caller=caller))
    assert register.by_key(given).pid == client
    del processes[client]
    assert added(register, replace(ANN, caller=stranger)).name == "ann"


@pytest.mark.parametrize("caller", [20, -1])
@pytest.mark.parametrize("changed", [{"root": "/q"}, {"name": "eve"}, {"name": ""}])
def test_nobody_takes_a_running_session_from_elsewhere(
    register: Register, processes: ProcessTable, caller: int, changed: dict[str, Any]
) -> None:
    """A stranger in another project, or under another name, does not stand for a session."""
    theirs = added(register, replace(ANN, pid=processes.run(10)))
    processes.run(20)
    with pytest.raises(Conflict):
        register.register(replace(ANN, caller=caller, **changed))
    assert register.by_session("claude-code", "s1") == theirs
    assert len(register.agents()) == 1


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


def test_agents_are_recognised_among_processes(register: Register, processes: ProcessTable) -> None:
    """A process counts as an agent's by number and start, and while the agent has not ended."""
    agent = added(register, replace(ANN, kind="session", pid=processes.run(10)))
    same, reused = [processes[10]], [SystemProcess(10, os.getuid(), 500.0, 1, "agent")]
    assert [register.has_process(each, ("session",)) for each in (same, reused)] == [True, False]
    assert not register.has_process(same, ("mcp",))
    register.end(agent.id)
    assert not register.has_process(same, ("session",))


def test_children_that_are_gone_make_room(register: Register, clock: FakeClock) -> None:
    """A session that has had its 64 sub-agents gets another one in the place of a gone one."""
    register.has_mail = lambda _: False
    parent = key(register)
    kid = replace(ANN, session="", parent="ann", key=parent)
    for number in range(CHILDREN):
        register.register(replace(kid, name=f"k{number}"))
    with pytest.raises(TooLarge):
        register.register(replace(kid, name="more"))
    clock.advance(200)
    assert added(register, replace(kid, name="more")).name == "more"
    assert len(register.children(register.by_key(parent).id)) == CHILDREN


def test_who_has_no_session_is_its_name(register: Register, clock: FakeClock) -> None:
    """A program that is started again has its mailbox again, and no other kind of program has."""
    register.has_mail = lambda _: False
    bot = Registration("/p", "/m", "bot", "script")
    agent = added(register, bot)
    with pytest.raises(Conflict):
        register.register(bot)
    clock.advance(200)
    assert added(register, bot).id == agent.id
    clock.advance(200)
    other = added(register, replace(bot, client="another"))
    assert other.id != agent.id
    register.end(other.id)
    assert added(register, bot).id != other.id


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


def test_a_name_goes_from_who_is_gone_without_mail(register: Register, clock: FakeClock) -> None:
    """A gone agent keeps its name while it has mail; without, the next one has the name."""
    mail: set[int] = set()
    register.has_mail = mail.__contains__
    first = added(register)
    mail.add(first.id)
    clock.advance(200)
    with pytest.raises(Conflict):
        register.register(replace(ANN, session="s2"))
    mail.clear()
    second = added(register, replace(ANN, session="s2"))
    assert (register.get(first.id), register.resolve("ann", "/p").id) == (None, second.id)
