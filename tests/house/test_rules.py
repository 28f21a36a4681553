"""The rules of the house that no linter knows (docs/architecture.md)."""

import ast
import re
import subprocess
from collections import Counter
from graphlib import TopologicalSorter

import pytest

from tests.house.source import ROOT, Files, Source, body_lines

PROGRAM = Files("memd")
TESTS = Files("tests")

# One library, one door: replacing a library is a change in one file. The SDK has three: a
# program's middleware, what it puts in the place of its memory tool, and what the daemon asks
# models with.
# Of psutil the lock asks whether one process lives, the daemon how busy the machine is, and a model
# that is a program what is left of it. httpx2 is the SDK's own, and asks other servers than its:
# those of other models, and those of teams.
DOORS = {
    "anthropic": "memd/client/context.py memd/client/memory_tool.py memd/model/claude.py",
    "frontmatter": "memd/store/guarded_yaml.py",
    "httpx2": ("memd/model/claude.py memd/model/http.py memd/model/openai.py memd/remote/link.py"),
    "jinja2": "memd/ui/pages.py",
    "jsonrpcserver": "memd/rpc/dispatch.py",
    "markdown_it": "memd/ui/texts.py",
    "psycopg": "memd/server/postgres.py",
    "psutil": "memd/daemon/machine.py memd/model/processes.py memd/store/lock.py",
    "re2": "memd/base/regex.py",
    "sqlite3": "memd/server/sqlite.py memd/state/database.py memd/store/convert.py",
    "starlette": "memd/server/app.py memd/ui/app.py",
    "structlog": "memd/daemon/log.py",
    "subprocess": (
        "memd/cli/commands/editing.py memd/cli/commands/page.py memd/cli/commands/service.py"
        " memd/client/hook_file.py memd/client/launch.py memd/model/command.py"
    ),
    "Stemmer": "memd/text/stems.py",
    "uvicorn": "memd/server/serving.py memd/ui/serving.py",
    "watchdog": "memd/store/watch.py",
}
# Files that decide and touch nothing.
PURE_ROOMS = str.split(
    "agent context conversation base dream extract instructions memories messages "
    "notes portable progress prompt recall review rules team text"
)
PURE_FILES = (
    "memd/rpc/framing.py",
    "memd/rpc/messages.py",
    "memd/model/breaker.py",
    "memd/model/endpoint.py",
    "memd/model/errors.py",
    "memd/model/plain.py",
    "memd/model/port.py",
    "memd/model/presets.py",
    "memd/model/probe.py",
    "memd/model/wire.py",
    "memd/store/guarded_yaml.py",
    "memd/store/head.py",
    "memd/store/index.py",
    "memd/store/memory.py",
    "memd/store/merge.py",
    "memd/store/secret.py",
    "memd/store/title.py",
)
# JSON-RPC's own codes, and the one for a cancelled request that LSP clients know.
STANDARD = {-32700, -32600, -32601, -32602, -32603, -32800}
# Each class of errors beside the families, and what catches exactly it.
CAUGHT_AS_THEMSELVES = {
    "NotJsonError": "JSON-RPC's own code; whoever reads JSON catches it",
    "InvalidRequestError": "JSON-RPC's own code",
    "UnknownMethodError": "JSON-RPC's own code",
    "DaemonUnavailableError": "clients connect again after it, and after no answer of the daemon",
    "AnswerTimeoutError": "the call may still be under way, and commands then say so",
    "AlreadyRunningError": "not a failure: the second daemon ends with 0",
    "StateUnusableError": "whoever can do without a small fact goes on after it",
    "StateFaultError": "as before, and the state file itself is whole",
    "ModelError": "the root of those of models",
    "ModelNotConfiguredError": "no model is asked, so nothing fails",
    "SdkMissingError": "as before",
    "ProgramMissingError": "as before",
    "KeyFileUnusableError": "as before",
    "EnvFileUnusableError": "the daemon serves without the file",
    "ProgramFailedError": "a model that is a program",
    "ModelUnavailableError": "the same request is sent again after a pause",
    "ModelBusyError": "the same request is sent again after a pause",
    "ModelUnauthorisedError": "another key may do",
    "ModelRefusedError": "the request is sent without the part that the server does not know",
    "PromptTooLongError": "the request is sent again with less",
    "ModelReplyError": "another form of the answer may do",
    "CapReachedError": "the model was not asked, so it does not count as failed",
}
IMPURE = {"anyio", "asyncio", "random", "socket", "structlog", "subprocess", "threading", "time"}
# The edges where anything may arrive and nothing may pass: each server's dispatch, jobs, the syncs
# of a team, memctl, and a program's requests, which memd must not stop.
EDGES = (
    "memd/client/context.py",
    "memd/rpc/dispatch.py",
    "memd/cli/mcp.py",
    "memd/jobs/service.py",
    "memd/team/service.py",
    "memd/cli/running.py",
    "memd/server/app.py",
)


def test_modules_stay_short() -> None:
    """No module has more than 500 lines."""
    assert [s.path for s in (*PROGRAM, *TESTS) if len(s.lines) > 500] == []


def test_functions_stay_short() -> None:
    """No function has more than 60 lines without its docstring, and nine in ten at most 25."""
    sizes = [(body_lines(f), f"{s.path}:{f.name}") for s in PROGRAM for f in s.functions]
    assert [where for size, where in sizes if size > 60] == []
    ranked = sorted(size for size, _ in sizes)
    assert ranked[int(len(ranked) * 0.9)] <= 25


def test_every_module_says_what_it_is() -> None:
    """Each module opens with a docstring."""
    assert [s.path for s in (*PROGRAM, *TESTS) if not ast.get_docstring(s.tree)] == []


def test_public_things_are_described() -> None:
    """Every public class and function of the program has a docstring."""
    bare = [
        f"{s.path}:{node.name}"
        for s in PROGRAM
        for parent in s.nodes
        if isinstance(parent, ast.Module | ast.ClassDef)
        for node in parent.body
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and not node.name.startswith("_")
        and not ast.get_docstring(node)
    ]
    assert bare == []


def test_one_library_has_one_door() -> None:
    """Each outside library is imported by exactly the file that owns it."""
    wrong = [
        f"{s.path} imports {name}"
        for s in PROGRAM
        for name in s.imports
        if name.split(".")[0] in DOORS and s.path not in DOORS[name.split(".")[0]].split()
    ]
    assert wrong == []


def test_the_daemon_starts_a_process_in_one_place() -> None:
    """But for the compiler of a new hook, only a model that is a program is started."""
    starting = re.compile(
        r"open_process|run_process|posix_spawn|os\.(fork|exec|spawn|system|popen)"
    )
    starts = [s.path for s in PROGRAM if starting.search(s.text)]
    assert starts == ["memd/cli/hook.py", "memd/model/command.py"]


def test_no_files_import_each_other() -> None:
    """Imports make no cycle of files, wherever in a file they stand."""
    modules = {s.path[:-3].replace("/", ".").removesuffix(".__init__"): s for s in PROGRAM}
    graph = {
        name: {found for found in s.imports_in(modules) if found != name}
        for name, s in modules.items()
    }
    TopologicalSorter(graph).prepare()


def is_service(source: Source) -> bool:
    """Return whether a file does a room's work for callers."""
    return source.path.endswith("/service.py") or "\n    @method(" in source.text


def test_pure_files_touch_nothing() -> None:
    """A file that decides imports no clock, no thread, no socket, no process and no log."""
    wrong = [
        f"{s.path} imports {name}"
        for s in PROGRAM
        if (s.path.split("/")[1] in PURE_ROOMS and not is_service(s)) or s.path in PURE_FILES
        if s.path != "memd/base/threads.py"  # which is how services block
        for name in s.imports
        if name.split(".")[0] in IMPURE
    ]
    assert wrong == []


def test_anything_is_caught_at_edges_only() -> None:
    """Catching every exception is for dispatch edges, the job edge and the command line."""
    broad = {
        s.path
        for s in PROGRAM
        for node in s.nodes
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or (isinstance(node.type, ast.Name) and node.type.id == "Exception"))
    }
    assert broad <= set(EDGES)


def test_nothing_is_left_for_later() -> None:
    """No file holds a note to do something some day."""
    pattern = re.compile(r"\b(TODO|FIXME|XXX)\b")
    assert [
        s.path for s in (*PROGRAM, *TESTS) if "house" not in s.path and pattern.search(s.text)
    ] == []


def test_reasons_stand_in_the_project() -> None:
    """No file refers to a numbered chapter that is not in the repository."""
    pattern = re.compile(r"\bspec" + r" \d|\bfacts" + r"[/:] ?\w+\.md")
    sources_with_one = [s.path for s in (*PROGRAM, *TESTS) if pattern.search(s.text)]
    assert sources_with_one == []


def test_names_say_something() -> None:
    """No file has a name that could hold anything."""
    vague = {"utils", "helpers", "common", "misc", "manager"}
    assert [s.path for s in PROGRAM if s.path.rsplit("/", 1)[1][:-3] in vague] == []


def test_a_name_means_one_class() -> None:
    """No two classes have one name; a family of errors may share one."""
    counts = Counter(
        node.name for s in PROGRAM if s.path != "memd/base/errors.py" for node in s.classes
    )
    assert [name for name, count in counts.items() if count > 1] == []


def test_tasks_have_owners() -> None:
    """No task is created outside a task group."""
    ownerless = re.compile(r"(asyncio|loop)\.(create_task|ensure_future)\(")
    assert [s.path for s in PROGRAM if ownerless.search(s.text)] == []


def test_every_room_is_on_the_map() -> None:
    """Each room has its place in the map of docs/architecture.md."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    chapter = text.split("## Map")[1].split("\n## ")[0]
    rooms = {s.path.split("/")[1] for s in PROGRAM if s.path.count("/") > 1}
    assert [room for room in sorted(rooms) if f"`{room}`" not in chapter] == []


def test_every_option_is_read() -> None:
    """What a user may set is read somewhere in the program."""
    declared = "memd/base/settings.py"
    options = {
        node.target.id
        for s in PROGRAM
        if s.path == declared
        for node in s.nodes
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and ast.unparse(node.annotation).startswith("Annotated[")
    }
    read = {
        node.attr
        for s in PROGRAM
        if s.path != declared
        for node in s.nodes
        if isinstance(node, ast.Attribute)
    }
    assert len(options) > 30
    assert sorted(options - read) == []


def test_every_test_says_what_must_hold() -> None:
    """Each test has a docstring of one sentence."""
    silent = []
    for s in TESTS:
        for function in s.functions:
            if not function.name.startswith("test_"):
                continue
            words = ast.get_docstring(function) or ""
            if not words.endswith(".") or "\n\n" in words:
                silent.append(f"{s.path}:{function.name}")
    assert silent == []


def test_tests_use_real_parts_and_never_sleep() -> None:
    """No test mocks a part or waits for a clock."""
    banned = re.compile(r"unittest\.mock|MagicMock|monkeypatch\.setattr|\bsleep\([0-9.]*[1-9]")
    assert [s.path for s in TESTS if "house" not in s.path and banned.search(s.text)] == []


def test_errors_are_fourteen_families() -> None:
    """Each family has a code and a kind of its own, outside the range that JSON-RPC reserves."""
    families = [
        node
        for s in PROGRAM
        if s.path == "memd/base/errors.py"
        for node in s.classes
        if [ast.unparse(base) for base in node.bases] == ["MemdError"]
    ]
    codes, kinds = (
        {
            ast.literal_eval(line.value)
            for node in families
            for line in node.body
            if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == name
        }
        for name in ("code", "kind")
    )
    assert len(families) == len(codes) == len(kinds) == 14
    assert [code for code in codes - STANDARD if -32768 <= code <= -32000] == []


def test_few_errors_are_more_than_their_family() -> None:
    """Each further class of errors is caught as itself, and its reason is named here."""
    family_file = [s for s in PROGRAM if s.path == "memd/base/errors.py"]
    families = {node.name for s in family_file for node in s.classes}
    # The families come last: a struct may have a family's name.
    classes = {node.name: node for s in (*PROGRAM, *family_file) for node in s.classes}
    others = {name for name in classes.keys() - families if not name.startswith("_")}
    further = {name for name in others if _is_error(classes, name)}
    assert sorted(further) == sorted(CAUGHT_AS_THEMSELVES)


def test_no_machine_is_named() -> None:
    """No tracked file holds a path of a machine or the host of a package registry."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("not a git checkout: the list of files is not known")
    pattern = re.compile("/wo" + "rk/|/fa" + "rm/|pypi" + r"\.org|registry\.npm" + "js|/ro" + "ot/")
    assert [
        name
        for name in listed.stdout.split("\0")
        if name
        and (ROOT / name).is_file()
        and pattern.search((ROOT / name).read_text(errors="replace"))
    ] == []


def _is_error(classes: dict[str, ast.ClassDef], name: str) -> bool:
    """Return whether a class is an error that a caller may see."""
    node = classes.get(name)
    bases = [ast.unparse(base).rsplit(".", 1)[-1] for base in node.bases] if node else []
    return name == "MemdError" or any(_is_error(classes, base) for base in bases if base != name)
