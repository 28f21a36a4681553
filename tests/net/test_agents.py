"""Who is there: registering agents, their names, states and keys (10.2)."""

import os
import subprocess
import uuid

import pytest

from tests.net.clocked_home import clocked_home
from tests.net.crew import Crew
from tests.net.kit import PYTHON, Home, Project, until
from tests.net.wire import RpcError

NAMES = [
    " ", ".", "..", "a/../b", "../a", "/a", "A", "*", "all", "user", "human", "system", "memd",
    "unregistered", "con", "a\0b", "a\nb", "a\u202eb", "a\u200bb", "\uff0fa", "a" * 65,
    ".hidden", "a ", "a\\b", "%2e%2e", "uds:/x", "bridge:1", "a@b", "a#b", "a\x1b[2J",
]  # fmt: skip


def refused(crew: Crew, method: str, **params: object) -> RpcError:
    """Return the error of a call."""
    with pytest.raises(RpcError) as caught:
        crew.home.call(method, **params)
    return caught.value


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_one_plain_component(project: Project, name: str) -> None:
    """A reserved or hostile name is refused with a sentence in plain characters."""
    with pytest.raises(RpcError) as caught:
        project.call("agent.register", name=name)
    assert caught.value.message.isprintable()
    assert project.call("agent.list")["agents"] == []


def test_no_agent_is_called_person(project: Project) -> None:
    """The name ``person`` is reserved."""
    with pytest.raises(RpcError):
        assert not project.call("agent.register", name="person")


@pytest.mark.parametrize("name", ["a", "builder-2", "x" * 64])
def test_a_plain_name_is_taken_as_it_is(project: Project, name: str) -> None:
    """A name in lower case of up to 64 characters is the address in the project."""
    made = project.call("agent.register", name=name)
    assert made["address"] == name
    assert made["agent"]
    assert len(made["key"]) >= 43  # 256 bits


def test_a_name_belongs_to_who_lives(project: Project) -> None:
    """A second agent of the name hears a free one; another project may have the name too."""
    crew = Crew(project, "one")
    given = {"cwd": project.cwd, "session_id": "another"}
    error = refused(crew, "agent.register", name="one", **given)
    assert error.kind == "name_taken"
    free = error.data["free"]
    assert project.home.call("agent.register", name=free, **given)["address"] == free
    assert Crew(project.home.project(), "one").agents()


def test_the_same_session_is_the_same_agent(project: Project) -> None:
    """Registering a session and name again gives the same agent and a new key."""
    given = {"name": "one", "session_id": str(uuid.uuid4())}
    first, again = (project.call("agent.register", **given) for _ in range(2))
    assert (first["agent"], first["address"]) == (again["agent"], again["address"])
    project.home.call("message.receive", key=again["key"])
    with pytest.raises(RpcError) as caught:
        project.home.call("message.receive", key=first["key"])
    assert caught.value.kind == "key_refused"


@pytest.mark.parametrize("forged", ["0" * 64, "x", "", "A" * 43])
@pytest.mark.parametrize("method", ["message.receive", "message.ack", "agent.end"])
def test_nobody_acts_without_the_key(project: Project, method: str, forged: str) -> None:
    """A key that memd did not give is refused for every act of an agent's."""
    crew = Crew(project, "one")
    more = {"ids": ["m1"]} if method == "message.ack" else {}
    assert refused(crew, method, key=forged, **more).code in {1060, 1006}
    assert set(crew.agents()) == {"one"}


def test_keys_are_kept_hashed(project: Project) -> None:
    """No key stands in a file of memd's."""
    key = Crew(project, "one").keys["one"]
    for path in project.home.state.rglob("*"):
        if path.is_file():
            assert key.encode() not in path.read_bytes()


def test_a_child_registers_with_its_parents_key(project: Project) -> None:
    """A child's address is below its parent's; without the parent's key there is none."""
    crew = Crew(project, "lead", "other")
    assert crew.child("lead", "kid") == "lead/kid"
    given = {"cwd": project.cwd, "name": "kid2", "parent": "lead"}
    for more in ({}, {"key": "x" * 43}):
        assert refused(crew, "agent.register", **given, **more).code in {1060, 1006}
    made = crew.home.call("agent.register", key=crew.keys["other"], **given)
    assert made["address"] == "other/kid2"
    crew.home.call("agent.end", key=crew.keys["lead"])
    states = {address: row["state"] for address, row in crew.agents().items()}
    assert [states.get(name, "ended") for name in ("lead", "lead/kid")] == ["ended", "ended"]
    assert states["other"] != "ended"


def test_an_ended_agent_acts_no_more(project: Project) -> None:
    """After ``agent.end`` its key is refused, and what is sent to it is an error."""
    crew = Crew(project, "one", "two")
    crew.send("two", "one")
    answer = crew.home.call("agent.end", key=crew.keys["one"])
    assert answer == {"ended": True, "returned": 1}
    assert refused(crew, "message.receive", key=crew.keys["one"]).code in {1060, 1061, 1006}
    with pytest.raises(RpcError):
        crew.send("two", "one")


def test_a_process_makes_an_agent_live(project: Project) -> None:
    """An agent with a process is live while that runs, and gone with it; its mailbox stays."""
    crew = Crew(project, "two")
    with subprocess.Popen([PYTHON, "-c", "input()"], stdin=subprocess.PIPE) as process:
        crew.register("one", pid=process.pid)
        assert crew.agents()["one"]["state"] in {"live", "idle"}
        crew.send("two", "one", "while it lives")
    until(lambda: crew.agents()["one"]["state"] == "gone", "the agent is gone")
    crew.register("one")
    assert crew.bodies("one") == ["while it lives"]


def test_a_process_that_is_not_there_is_refused(project: Project) -> None:
    """No agent registers with the number of no living process of the person's."""
    with subprocess.Popen([PYTHON, "-c", ""]) as process:
        process.wait()
    for pid in (process.pid, -1, 2**40):
        with pytest.raises(RpcError):
            project.call("agent.register", name="one", pid=pid)
    assert project.call("agent.list")["agents"] == []


def test_silence_makes_an_agent_gone() -> None:
    """Without a process an agent is gone 120 s after its last call, and keeps its mail."""
    with clocked_home() as home:
        crew = Crew(home.project("w"), "one", "two")
        crew.send("one", "two", "kept")
        home.pass_time(seconds=110)
        crew.receive("one")
        crew.hang_up()
        home.pass_time(seconds=15)
        states = {address: row["state"] for address, row in crew.agents().items()}
        assert (states["one"] != "gone", states["two"]) == (True, "gone")
        assert crew.bodies("two") == ["kept"]
        home.pass_time(seconds=301)
        with home.connect() as client:
            client.call("message.receive", key=crew.keys["one"])
            assert crew.agents()["one"]["state"] in {"live", "idle"}


def test_unread_mail_keeps_a_name() -> None:
    """The name of a gone agent that has unread mail is taken."""
    with clocked_home() as home:
        crew = Crew(home.project("w"), "one", "two")
        crew.send("one", "two", "kept")
        home.pass_time(seconds=130)
        with pytest.raises(RpcError) as caught:
            assert not home.call("agent.register", cwd=crew.project.cwd, name="two")
        assert caught.value.kind == "name_taken"


def test_hooks_register_a_session(own: Home) -> None:
    """With ``--messages`` a session is an agent: its title, else client and 4 of its id."""
    project = own.start().project()
    given = {"client": "claude-code", "event": "SessionStart", "deadline_ms": 10_000}
    titled, plain, quiet = (str(uuid.uuid4()) for _ in range(3))
    payload = {"cwd": project.cwd, "source": "startup"}
    title = {"session_id": titled, "session_title": "builder", **payload}
    project.home.call("hook", payload=title, messages=True, **given)
    project.home.call("hook", payload={"session_id": plain, **payload}, messages=True, **given)
    project.home.call("hook", payload={"session_id": quiet, **payload}, **given)
    found = project.call("agent.list")["agents"]
    assert {row["address"] for row in found} == {"builder", f"claude-code-{plain[:4]}"}
    again = {"session_id": quiet, "session_title": "builder", **payload}
    project.home.call("hook", payload=again, messages=True, **given)
    names = [row["address"] for row in project.call("agent.list")["agents"]]
    assert (len(names), len(set(names))) == (3, 3)  # hooks take the free name


def test_agents_of_all_projects_are_listed(project: Project) -> None:
    """``all`` lists agents of other projects with an address that reaches them from here."""
    other = project.home.project()
    crew, far = Crew(project, "one"), Crew(other, "far")
    rows = project.call("agent.list", all=True)["agents"]  # those of the home's other tests too
    (address,) = [row["address"] for row in rows if other.path.name in row["address"]]
    assert address.startswith("far@")
    assert crew.send("one", address)["recipients"]
    assert far.agents()


def test_messages_that_are_off_register_nobody(project: Project) -> None:
    """With ``messages.enabled = false`` no agent is registered and nothing is sent."""
    project.home.configure("[messages]\nenabled = false\n")
    for method, params in {
        "agent.register": {"name": "one"},
        "message.send": {"to": "one", "body": "x"},
    }.items():
        with pytest.raises(RpcError) as caught:
            project.call(method, **params)
        assert caught.value.kind == "messages_off"


def test_memctl_lists_who_is_there(project: Project) -> None:
    """``memctl agent list`` names each agent with its state."""
    Crew(project, "builder")
    shown = project.memctl("agent", "list").stdout
    assert "builder" in shown


@pytest.mark.full
def test_a_parent_has_64_children(project: Project) -> None:
    """The 65th living child of an agent is refused."""
    crew = Crew(project, "lead")
    pid = os.getpid()
    for number in range(64):
        crew.child("lead", f"kid{number}", pid=pid)
    with pytest.raises(RpcError):
        crew.child("lead", "kid64", pid=pid)
    crew.home.call("agent.end", key=crew.keys["lead"])


@pytest.mark.full
def test_beyond_500_the_most_silent_ends() -> None:
    """The 501st agent takes the place of the one that was silent for longest."""
    with clocked_home() as home:
        project = home.project("w")
        with home.connect() as client:
            for number in range(501):
                given = {"cwd": project.cwd, "name": f"a{number}", "session_id": f"s{number}"}
                client.call("agent.register", **given)
            states = {row["address"]: row["state"] for row in project.call("agent.list")["agents"]}
        assert states.get("a0", "ended") == "ended"
        assert states["a1"] != "ended"
        assert states["a500"] != "ended"
