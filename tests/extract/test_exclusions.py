"""What is never saved."""

import pytest

from memd.extract import cues
from memd.extract.exclusions import objection
from memd.extract.sentences import Sentence, mask


def worth(text: str, kind: str = "project") -> bool:
    """Ask about a text."""
    return not objection(Sentence(text, mask(text)), kind, cues.of(text))


@pytest.mark.parametrize(
    "text",
    [
        "the handlers live in src/handlers",
        "the entry point is main",
        "our folder structure is flat",
        "config is read from ./config/app.toml",
        "it is at /etc/app/settings",
        "the fix is to restart the worker",
        "the root cause was a stale cache",
        "it",
        "`code` only",
        "目录结构很简单",
        "修复方法是重启",
    ],
)
def test_structure_and_recipes_are_never_kept(text: str) -> None:
    """Neither as a fact nor as a rule."""
    assert not worth(text)
    assert not worth(text, "feedback")


@pytest.mark.parametrize(
    "text",
    [
        "the helper is in parser.py now",
        "use parse_all() for that case",
        "PR #128 is what we wait for",
        "the next step is the parser",
        "commit 5c3bb68 broke the build",
    ],
)
def test_code_history_and_task_state_are_no_facts(text: str) -> None:
    """What the repository, git or the task itself knows is not the project's memory."""
    assert not worth(text)


@pytest.mark.parametrize(
    "text",
    [
        "we deploy and/or release on Mondays",
        "CI/CD runs on our own machines",
        "bugs are tracked at https://linear.app/team/ingest",
        "questions go to #dev-ops on Slack",
        "我们周四发布",
    ],
)
def test_facts_pass(text: str) -> None:
    """Slashes in words and addresses are no paths."""
    assert worth(text)


def test_a_rule_may_name_a_file() -> None:
    """Always doing something to a file is a rule, not a fact about it."""
    assert worth("always update CHANGELOG.md", "feedback")
