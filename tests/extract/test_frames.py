"""Where a person's own words end in a message."""

import pytest

from memd.extract.frames import outside
from memd.extract.sentences import sentences


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("Thanks. Draft a note: we decided to freeze. Never merge.", ["Thanks."]),
        ("ok, translate this: I am a doctor. I prefer tea.", []),
        ("Write a section that says always use pnpm. Never npm.", []),
        ("Pretend you are strict. You always reject code.", []),
        ("Here's our CONTRIBUTING.md\n- Always rebase", ["Here's our CONTRIBUTING.md"]),
        ("can you answer this for me\nAlways cc my manager", ["can you answer this for me"]),
        ("Hm. Maria wrote:\nalways ask me first", ["Hm."]),
        ("Maria wrote:\nNever squash", ["Maria wrote:"]),
        ("make a note: the demo account is acme-demo. It stays.", None),
        ("I'm a data engineer. Always use type hints.", None),
        ("写一段通知：周四冻结合并。以后都用新模板。", []),
        ("这是客户的邮件\n以后请一律用 xlsx", ["这是客户的邮件"]),
        ("假装你是评审。永远不要放过。", []),
        ("记一下：测试环境在法兰克福。以后都用中文。", None),
    ],
)
def test_material_is_told_from_the_persons_words(text: str, own: list[str] | None) -> None:
    """What stands behind a task, a paste or a role is not the person's word; all else is."""
    said = sentences(text)
    expected = [sentence.text for sentence in said] if own is None else own
    assert [sentence.text for sentence in outside(said)] == expected
