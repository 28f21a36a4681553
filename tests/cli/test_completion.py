"""The completion scripts."""

import shutil
import subprocess

import pytest
import shtab

from memd.cli.arguments import CompletionHints, parser
from memd.cli.operation_table import SHELLS

BASH = shutil.which("bash")
LISTED = {
    "list": "printf '%s\\n' user_role.md tabs.md",
    "notes list": "echo 4f2a-9c",
    "agent list": "printf '%s\\n' builder builder/tests",
    "review": "echo m12",
}
HINTS = CompletionHints(shtab.FILE, lambda words: shtab.cmd(LISTED[words]))


@pytest.mark.skipif(BASH is None, reason="there is no bash to complete in")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (["memctl", "hist"], {"history"}),
        (["memctl", "log", "--actor", "d"], {"dream"}),
        (["memctl", "history", "--actor", "d"], {"dream"}),
        (["memctl", "history", "--be"], {"--before"}),
        (["memctl", "job", ""], {"list", "show", "wait", "cancel"}),
        (["memctl", "--json", "--cwd", "/", "job", "w"], {"wait"}),
        (["memctl", "message", "send", "bu"], {"builder", "builder/tests"}),
        (["memctl", "review", "accept", "m"], {"m12"}),
        (["memctl", "job", "list", "--he"], {"--here", "--help"}),
        (["memctl", "add", "--type", "f"], {"feedback"}),
        (["memctl", "add", "--name", ""], set()),
        (["memctl", "--color", "n"], {"never"}),
        (["memctl", "extract", "--transcript", "/et"], {"/etc"}),
        (["memctl", "completion", "z"], {"zsh"}),
        (["memctl", "show", "us"], {"user_role.md"}),
        (["memctl", "log", ""], {"user_role.md", "tabs.md"}),
        (["memctl", "notes", ""], {"show", "list", "path", "edit", "rm"}),
        (["memctl", "notes", "show", ""], {"4f2a-9c"}),
        (["memctl", "instructions", "--touched", "/et"], {"/etc"}),
        (["memctl", "review", "re"], {"reject", "refuse"}),
        (["memctl", "dream", "--l"], {"--last"}),
        (["memctl", "review", "--a"], {"--all"}),
        (["memctl", "review", "reject", "p3", "--r"], {"--reason"}),
        (["memctl", "review", "reject", "p3", "--l"], set()),
    ],
)
def test_bash_completes(line: list[str], expected: set[str]) -> None:
    """Words, verbs, options, choices, files and memories are completed where they belong."""
    words = " ".join(f"'{word}'" for word in line)
    ask = f"COMP_WORDS=({words}); COMP_CWORD={len(line) - 1}; _shtab_memctl"
    show = 'printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(
        [
            BASH or "",
            "--norc",
            "-c",
            f"{shtab.complete(parser(HINTS), 'bash')}\n{ask}\n{show}",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(done.stdout.split()) == expected
    assert done.stderr == ""


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shell_itself_accepts_its_script(shell: str) -> None:
    """The script parses; where the shell is missing the test says so."""
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"there is no {shell} here")
    script = shtab.complete(parser(HINTS), shell)
    done = subprocess.run(
        [program, "-n"], input=script, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
