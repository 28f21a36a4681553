"""The completion scripts."""

import shutil
import subprocess

import pytest

from memd.cli import completion
from memd.cli.arguments import COMMANDS

BASH = shutil.which("bash")


@pytest.mark.skipif(BASH is None, reason="there is no bash to complete in")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (["memctl", "hist"], {"history"}),
        (["memctl", "log", "--actor", "d"], {"dream"}),
        (["memctl", "history", "--actor", "d"], {"dream"}),
        (["memctl", "history", "--be"], {"--before"}),
        (["memctl", "job", ""], {"list", "show", "wait", "cancel", "retry"}),
        (["memctl", "--json", "--cwd", "/", "job", "w"], {"wait"}),
        (["memctl", "job", "list", "--h"], {"--here"}),
        (["memctl", "add", "--type", "f"], {"feedback"}),
        (["memctl", "add", "--name", ""], set()),
        (["memctl", "--color", "n"], {"never"}),
        (["memctl", "extract", "--transcript", "/et"], {"/etc"}),
        (["memctl", "completion", "z"], {"zsh"}),
        (["memctl", "dream", "re"], {"review", "reject"}),
        (["memctl", "dream", "--l"], {"--last"}),
        (["memctl", "dream", "review", "--a"], {"--all"}),
        (["memctl", "dream", "reject", "p3", "--r"], {"--reason"}),
        (["memctl", "dream", "reject", "p3", "--l"], set()),
    ],
)
def test_bash_completes(line: list[str], expected: set[str]) -> None:
    """Words, verbs, options, choices and files are completed where they belong."""
    words = " ".join(f"'{word}'" for word in line)
    ask = f"COMP_WORDS=({words}); COMP_CWORD={len(line) - 1}; _memctl"
    show = 'printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(
        [BASH or "", "--norc", "-c", f"{completion.bash()}\n{ask}\n{show}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(done.stdout.split()) == expected
    assert done.stderr == ""


@pytest.mark.parametrize("shell", sorted(completion.SCRIPTS))
def test_every_command_and_option_is_completed(shell: str) -> None:
    """Each script knows every command, verb, option and choice."""
    script = completion.SCRIPTS[shell]()
    for command in COMMANDS:
        for word in command.words:
            assert word in script
        for option in command.options:
            name = option.flag.removeprefix("--")
            assert (f"-l {name}" if shell == "fish" else option.flag) in script
            assert " ".join(option.choices) in script


def test_options_before_a_verb_are_not_completed_behind_it() -> None:
    """Fish offers the options of dream until one of its verbs is there."""
    verbs = "__fish_seen_subcommand_from review accept reject"
    lines = completion.fish().splitlines()
    (last,) = (line for line in lines if "-l last" in line)
    assert f"__fish_seen_subcommand_from dream; and not {verbs}" in last
    (verb,) = (line for line in lines if "-a review" in line)
    assert f"__fish_seen_subcommand_from dream; and not {verbs}" in verb


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_itself_accepts_its_script(shell: str) -> None:
    """The script parses; where the shell is missing the test says so."""
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"there is no {shell} here")
    script = completion.SCRIPTS[shell]()
    done = subprocess.run(
        [program, "-n"], input=script, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_quote_in_a_help_text_is_kept() -> None:
    """An apostrophe ends no word of the fish script."""
    assert completion._quoted("a 'b' \\") == "'a \\'b\\' \\\\'"
