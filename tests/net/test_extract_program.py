"""A program of the person's as the model: one request, one process, nothing of it remains."""

import json
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.net.extract_talk import extract, memory, messages, suggestions
from tests.net.kit import PYTHON, Home, Project, until

WISH = "Please never deploy on a Friday, the release of May broke."
QUOTE = "never deploy on a Friday"
PROGRAM = """
import json, os, signal, subprocess, sys, socket
folder, prompt = sys.argv[1], sys.stdin.read()
seen = {"prompt": prompt, "environ": dict(os.environ), "files": os.listdir("."), "cwd": os.getcwd()}
seen |= {"pid": os.getpid(), "group": os.getpgid(0), "argv": sys.argv}
plan = json.load(open(folder + "/plan"))
if plan.get("children"):
    end = [sys.executable, "-c", "import signal; signal.pause()"]
    seen["children"] = [subprocess.Popen(end, start_new_session=n > 0).pid for n in range(2)]
if plan.get("socket"):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(plan["socket"])
        s.sendall(json.dumps(plan["call"]).encode() + b"\\n")
        seen["answer"] = json.loads(s.makefile().readline())
number = len(os.listdir(folder))
with open(f"{folder}/new", "w") as file:
    json.dump(seen, file)
os.rename(f"{folder}/new", f"{folder}/run-{number}")
if plan.get("hang"):
    signal.pause()
if plan.get("fail"):
    sys.exit(plan["fail"])
answers = plan.get("answers") or ["[]"]
print(answers[min(number - 1, len(answers) - 1)])
"""


class Program:
    """The program: it records each run in a folder and does what the plan there says."""

    def __init__(self, home: Home, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        script = folder.with_suffix(".py")
        script.write_text(PROGRAM)
        argv = json.dumps([PYTHON, str(script), str(folder)])
        model = f'[model]\nprovider = "command"\nargv = {argv}\n'
        caps = "dollars_per_day = 500.0\nrequests_per_day = 100000\n"
        self.settings = f"{model}[dream]\nauto = false\n[spend]\n{caps}"
        home.configure(f"{self.settings}runs_per_day = 10000\n")
        if home.process:
            home.call("resume")  # an earlier test's failures may have paused its program
        self.plan()

    def plan(self, *answers: Any, **members: Any) -> None:
        """Let the next runs print these answers, the last for ever, or misbehave."""
        texts = [each if isinstance(each, str) else json.dumps(each) for each in answers]
        (self.folder / "plan").write_text(json.dumps({"answers": texts, **members}))

    @property
    def runs(self) -> list[dict[str, Any]]:
        """What each run saw, oldest first."""
        paths = sorted(self.folder.glob("run-*"), key=lambda path: int(path.name[4:]))
        return [json.loads(path.read_text()) for path in paths]


@pytest.fixture
def program(home: Home, project: Project) -> Program:
    """Return a program that the shared home asks."""
    return Program(home, project.path.with_suffix(".runs"))


def create(**members: str) -> dict[str, str]:
    """Return the operation that makes a rule with the person's words."""
    head = {"op": "create", "path": "fridays.md", "type": "feedback", "name": "fridays"}
    words = {"description": "no deploys on Fridays", "body": "No deploys on Fridays."}
    return {**head, **words, "said": QUOTE, **members}


def living(pid: int) -> bool:
    """Tell whether a process runs."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_operations_become_memories(project: Project, program: Program) -> None:
    """One answer creates, updates and deletes; it is one run and one change."""
    project.put("host.md", memory("host", "The staging host is stage-8."))
    project.put("old.md", memory("old", "Deploys are allowed on a Friday."))
    said = f"{WISH} The staging host is stage-9 now."
    update = {"op": "update", "path": "host.md", "body": "The staging host is stage-9."}
    delete = {"op": "delete", "path": "old.md", "reason": "taken back", "said": QUOTE}
    program.plan([create(), update, delete])
    answer = extract(project, said)
    assert (answer["saved"], answer["updated"]) == (["fridays.md"], ["host.md"])
    assert set(project.tree()) == {"MEMORY.md", "fridays.md", "host.md"}
    assert "(fridays.md)" in project.read()
    (run,) = program.runs
    assert WISH in run["prompt"]
    assert "host.md" in run["prompt"]
    assert project.call("memory.why", path="fridays.md")["origin"] == "user"


def test_a_run_is_clean(project: Project, program: Program) -> None:
    """The prompt comes on standard input alone, in an empty folder, with few variables."""
    extract(project, WISH)
    (run,) = program.runs
    assert WISH not in json.dumps(run["argv"])
    assert run["files"] == []
    assert not run["cwd"].startswith(project.cwd)
    assert run["group"] == run["pid"]
    assert not [name for name in run["environ"] if "KEY" in name or "TOKEN" in name]
    until(lambda: not Path(run["cwd"]).exists(), "its folder is removed")


def test_the_same_rules_hold(project: Project, program: Program) -> None:
    """A rule without the person's words is asked for once more, then it is a suggestion."""
    program.plan([create(said="deploy whenever you like")])
    answer = extract(project, WISH)
    assert (answer["saved"], project.tree()) == ([], {})
    assert len(program.runs) == 2
    assert len(suggestions(project)) == 1


def test_a_repair_is_taken(project: Project, program: Program) -> None:
    """The second answer stands where the first was refused."""
    program.plan([create(said="deploy whenever you like")], [create()])
    assert extract(project, WISH)["saved"] == ["fridays.md"]
    assert "deploy whenever you like" in program.runs[1]["prompt"]


@pytest.mark.parametrize("answer", ["Sure, here you are!", "[{]", '{"op": "create"}', "[5]"])
def test_no_json_is_no_memory(project: Project, program: Program, answer: str) -> None:
    """What is not the wanted JSON changes nothing and is not asked for without end."""
    program.plan(answer)
    job = project.call("extract", session_id="s1", messages=messages(WISH))["job"]
    until(lambda: len(program.runs) >= 1, "the program ran")
    project.home.call("job.cancel", job=job)
    assert project.tree() == {}
    assert len(program.runs) <= 2


def test_a_write_outside_is_refused(project: Project, program: Program) -> None:
    """An operation on a path outside the memory directory does nothing."""
    paths = ("../x.md", "/tmp/net-program.md", f"{project.path}/x.md", ".consolidate-lock")
    program.plan([create(path=path) for path in paths])
    job = project.call("extract", session_id="s1", messages=messages(WISH))["job"]
    until(lambda: len(program.runs) >= 1, "the program ran")
    project.home.call("job.cancel", job=job)
    assert not Path("/tmp/net-program.md").exists()
    assert not (project.path / "x.md").exists()
    assert not (project.folder / "x.md").exists()


def test_its_failure_is_told(project: Project, program: Program) -> None:
    """The words of a program that fails reach the person."""
    program.plan(fail="please sign in first")
    job = project.call("extract", session_id="s1", messages=messages(WISH))["job"]

    def told() -> bool:
        found = project.home.call("job.list", job=job)["jobs"][0]
        return "please sign in first" in json.dumps([found["error"], found["result"]])

    until(told, "the job has the program's words")
    project.home.call("job.cancel", job=job)


def test_its_hooks_are_nobodys(project: Project, program: Program) -> None:
    """A hook from below the program is answered with nothing."""
    project.write("host.md", "The staging host is stage-8.")
    asks = {"cwd": project.cwd, "prompt": "which stage is the staging host"}
    params = {"client": "claude-code", "event": "UserPromptSubmit", "deadline_ms": 10_000}
    below = {**params, "payload": {**asks, "session_id": "below"}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "hook", "params": below}
    program.plan(socket=project.home.socket, call=call)
    above = {**asks, "session_id": "above"}
    assert "stage-8" in str(project.home.call("hook", **params, payload=above))
    extract(project, WISH)
    assert program.runs[0]["answer"] == {"jsonrpc": "2.0", "id": 1, "result": None}


def test_a_cancelled_program_is_ended_whole(project: Project, program: Program) -> None:
    """With its job a hanging program and all its children end."""
    program.plan(hang=True, children=True)
    job = project.call("extract", session_id="s1", messages=messages(WISH))["job"]
    (run,) = until(lambda: program.runs, "the program ran")
    assert project.home.call("job.cancel", job=job)["cancelled"]
    pids = [run["pid"], *run["children"]]
    until(lambda: not any(map(living, pids)), "all of it has ended")


@pytest.mark.full
def test_a_program_of_a_killed_daemon_is_ended(own: Home) -> None:
    """What ran at a kill -9 is ended by the next start, and the job runs once."""
    project = own.project()
    program = Program(own, own.path / "runs")
    own.start()
    program.plan(hang=True, children=True)
    project.call("extract", session_id="s1", messages=messages(WISH))
    (run,) = until(lambda: program.runs, "the program ran")
    own.stop(signal.SIGKILL)
    program.plan([create()])
    own.start()
    until(lambda: not any(map(living, [run["pid"], *run["children"]])), "all of it has ended")
    until(lambda: "fridays.md" in project.tree(), "the job was done")
    assert len(program.runs) == 2


@pytest.mark.full
def test_runs_of_a_day_are_counted(own: Home) -> None:
    """Over a restart a program runs no more often than its cap; then memd works without."""
    project = own.project()
    program = Program(own, own.path / "runs")
    own.configure(f"{program.settings}runs_per_day = 3\n")
    engines = []
    for start in range(2):
        own.start()
        for number in range(3):
            answer = extract(project, WISH, session=f"s{start}{number}")
            engines.append(answer["engine"])
        own.stop()
    assert len(program.runs) <= 3
    assert engines[0] != "local"
    assert engines[-1] == "local"


@pytest.mark.full
def test_never_two_at_once(own: Home) -> None:
    """Runs for two projects are one after the other."""
    program = Program(own, own.path / "runs")
    own.start()
    program.plan(hang=True)
    jobs = []
    for number in range(2):
        given = {"session_id": f"s{number}", "messages": messages(WISH)}
        jobs.append(own.project().call("extract", **given)["job"])
    until(lambda: program.runs, "the program ran")
    assert own.call("status")["jobs"]
    assert len(program.runs) == 1
    for job in jobs:
        own.call("job.cancel", job=job)


AT_END = "[extract]\nat_end = true\n"


class Session:
    """A session of a person whose memd reads sessions at their end."""

    def __init__(self, project: Project, program: Program, runs: int = 10_000) -> None:
        project.home.configure(f"{program.settings}runs_per_day = {runs}\n{AT_END}")
        self.talk = project.conversation()
        self._project = project

    def turn(self, said: str, minutes_ago: float = 0) -> dict[str, Any]:
        """Say something, get a reply, and return what the turn's end gave."""
        when = datetime.now(UTC) - timedelta(minutes=minutes_ago)
        stamp = when.strftime("%Y-%m-%dT%H:%M:%S.000Z")
        self.talk.user(said, timestamp=stamp).assistant("Ok.", timestamp=stamp)
        given = {"session_id": self.talk.session, "transcript_path": str(self.talk.path)}
        answer: dict[str, Any] = self._project.call("extract", **given, wait=True)
        return answer

    def end(self) -> dict[str, Any]:
        """End the session; return the result of the job that this began, once it has ended."""
        payload = {**self.talk.payload, "reason": "exit"}
        self._project.home.call("hook", client="claude-code", event="SessionEnd", payload=payload)
        job = self._project.call("job.list")["jobs"][0]
        answer: dict[str, Any] = self._project.home.call("job.wait", job=job["job"])
        return answer


def test_the_reader_by_consent_reads_at_the_end(project: Project, program: Program) -> None:
    """A session of five messages is read once, when it ends, and what is found is kept."""
    session = Session(project, program)
    program.plan([create()])
    for number in range(5):
        session.turn(f"{WISH} ({number})")
    assert program.runs == []
    session.end()
    assert len(program.runs) == 1
    assert f"{WISH} (0)" in program.runs[0]["prompt"]
    assert "fridays.md" in project.tree()
    session.end()
    assert len(program.runs) == 1


def test_the_end_does_not_wait_for_the_n_th_turn(project: Project, program: Program) -> None:
    """A session is read at its end however seldom turns are looked at."""
    session = Session(project, program)
    settings = f"{program.settings}runs_per_day = 10000\n{AT_END}every_turns = 50\n"
    project.home.configure(settings)
    for number in range(5):
        session.turn(f"{WISH} ({number})")
    session.end()
    assert len(program.runs) == 1


def test_a_short_session_is_not_read(project: Project, program: Program) -> None:
    """A session of four messages is left to the rules without a model."""
    session = Session(project, program)
    for number in range(4):
        session.turn(f"{WISH} ({number})")
    session.end()
    assert program.runs == []


def test_what_is_new_of_a_session_is_read_when_it_ends_again(
    project: Project, program: Program
) -> None:
    """A resumed session is read again, from where the reading before ended."""
    session = Session(project, program)
    for number in range(5):
        session.turn(f"the staging host has port 900{number}")
    session.end()
    session.turn(WISH)
    session.end()
    assert len(program.runs) == 2
    assert WISH in program.runs[1]["prompt"]


def test_a_long_session_is_read_once_an_hour(own: Home) -> None:
    """A session that goes on is read when what was not read is an hour old, and not before."""
    project = own.project()
    program = Program(own, own.path / "runs")
    own.start(clock=True)
    session = Session(project, program)
    counts = []
    for hour in range(3):
        for number in range(6):
            session.turn(f"{WISH} ({hour}.{number})", minutes_ago=-60 * hour)
            counts.append(len(program.runs))
        own.pass_time(hours=1)
    assert counts == [0] * 6 + [1] * 6 + [2] * 6
    assert f"{WISH} (0.0)" in program.runs[0]["prompt"]


def test_a_session_that_no_run_is_left_for_gives_nothing_twice(own: Home) -> None:
    """Where the day's runs are used up, the end brings nothing back that the person removed."""
    project = own.project()
    program = Program(own, own.path / "runs")
    own.start()
    session = Session(project, program, runs=0)
    said = "Please remember that the staging host is stage-9."
    (path,) = session.turn(said)["saved"]
    project.call("memory.delete", path=path)
    for number in range(4):
        session.turn(f"{WISH} ({number})")
    ended = session.end()
    assert program.runs == []
    assert ended["result"]["problem"]
    assert path not in project.tree()


def test_a_session_where_the_assistant_saved_is_not_read(
    project: Project, program: Program
) -> None:
    """What the assistant wrote itself is not looked for again, and the last request counts."""
    session = Session(project, program)
    for number in range(4):
        session.turn(f"{WISH} ({number})")
    path = str(project.memory / "own.md")
    call = {"type": "tool_use", "id": "t1", "name": "Write", "input": {"file_path": path}}
    session.talk.assistant([call])
    session.turn("Thank you.")
    session.talk.user("Please remember that the staging host is stage-9.").assistant("Ok.")
    session.end()
    assert program.runs == []
    assert "stage-9" in json.dumps(project.tree())


@pytest.mark.full
def test_a_start_reads_no_session_as_a_turn(own: Home) -> None:
    """After a restart what grew is looked at once, and the program is not asked."""
    project = own.project()
    program = Program(own, own.path / "runs")
    own.start(clock=True)
    session = Session(project, program)
    for number in range(5):
        session.turn(f"the staging host has port 900{number}")
    session.end()
    own.stop()
    session.talk.user("Please remember that the staging host is stage-9.").assistant("Ok.")
    own.start(clock=True)
    own.pass_time(seconds=120)
    until(lambda: "stage-9" in json.dumps(project.tree()), "it is looked at")
    jobs = own.call("job.list")["jobs"]
    assert len([job for job in jobs if job["kind"] == "extract"]) == 7
    assert len(program.runs) == 1
