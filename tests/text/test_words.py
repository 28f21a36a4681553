"""Text as the words that search counts."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.text.words import count, stemmed_lists, words
from tools import stems


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What are the deployments of the user?", ["deploy", "user"]),
        ("They went running, and wrote tests", ["run", "write", "test"]),
        ("user_service", ["user", "servic", "user_service"]),
        ("getUserName", ["user", "name", "getusername"]),
        ("iPad with gRPC", ["ipad", "grpc"]),
        ("HTTPServer", ["http", "server", "httpserver"]),
        ("src/api/user.py", ["src", "api", "user", "py", "src/api/user.py"]),
        ("v1.2", ["v1", "2", "v1.2"]),
        ("due 2026-04-02", ["due", "2026", "april", "2"]),
        ("due 2026-05-09", ["due", "2026", "may", "9"]),
        ("you may merge in May", ["merg", "may"]),
        ("Sept release", ["septemb", "releas"]),
        ("don't Ｍｏｃｋ the team’s db", ["mock", "team", "databas"]),
        ("我们的测试数据", ["测试", "试数", "数据"]),
        ("的 好", ["好"]),
        ("テストを書く", ["テス", "スト", "書"]),
        ("API接口v2", ["api", "接口", "v2"]),
        ("naïve café", ["naïv", "café"]),
        ("हिन्दी में, काम।", ["हिन्दी", "में", "काम"]),
        ("שָׁלוֹם עולם", ["שָׁלוֹם", "עולם"]),
        ("a x . _ \0 ---", []),
        ("____ def ____", ["def"]),
        ("\ud800 lone surrogate", ["lone", "surrog"]),
        *(
            (f"due {date}!", ["due", "2026", "april", "2"])
            for date in (
                *("2026/4/2", "2026.04.02", "April 2, 2026", "Apr 2 2026", "2 April 2026"),
                *("2nd of April 2026", "April 2nd, 2026", "2026年4月2日", "2026年04月02号"),
            )
        ),
        ("on 8 May 2023", ["2023", "may", "8"]),
        ("12026-04-02", ["12026", "04", "02"]),
        ("", []),
    ],
)
def test_words_that_count(text: str, expected: list[str]) -> None:
    """Stop words go, identifiers split and stay, dates spell their month, CJK comes in pairs."""
    assert words(text) == expected


@given(st.text(max_size=200))
def test_any_text_gives_the_same_words_again(text: str) -> None:
    """No text fails, and a second look gives the same words, none of them empty."""
    first = words(text)
    assert words(text) == first
    assert all(first)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("  \n", 0),
        ("thanks", 1),
        ("go on", 2),
        ("测试数", 1),
        ("测试数据", 2),
        ("ありがとう", 2),
        ("写 测试", 2),
    ],
)
def test_count(text: str, expected: int) -> None:
    """White space separates words; four CJK characters are more than one."""
    assert count(text) == expected


def test_common_words_are_stems() -> None:
    """The list of common words is in the form in which ``words`` gives them."""
    common = stemmed_lists().common
    assert common >= set(words("We were surprised that people increasingly chose their courses"))
    assert not common & set(words("the broker of the kiln"))


@pytest.mark.parametrize(
    "text",
    ["y" * 200_000, "a" + "\u0315" * 30_000 + "\u0316" * 30_000, "a_" * 50_000, "字" * 100_000],
)
def test_no_text_takes_long(text: str) -> None:
    """Words of a hostile text cost time that grows with its length alone."""
    began = time.process_time()
    words(text)
    assert time.process_time() - began < 5


def test_the_lists_in_stems_are_up_to_date() -> None:
    """What a start reads is what the lists give; ``python -m tools.stems`` writes it anew."""
    assert stems.FILE.read_text("utf-8") == stems.stemmed_lists()
