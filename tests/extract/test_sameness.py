"""When a statement is said again, corrected, or something else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.extract.sameness import INSTEAD, NOT_MARKED, NOW, Sameness, compare, marked, said


@pytest.mark.parametrize(
    ("old", "new", "decision"),
    [
        (
            "Always use tabs for indentation in Go files",
            "Never use tabs for indentation in YAML files",
            "add",
        ),
        ("Always use black", "Use ruff format instead of black", "update"),
        ("Use ruff format instead of black", "Use ruff format instead of black", "nothing"),
        ("Use black for notebooks", "Use ruff format instead of black", "add"),
        ("Never use black", "Use ruff format instead of black", "add"),
        ("Alice owns the billing service", "Alice owns the search service", "add"),
        (
            "Always run the linter before committing Go code",
            "Always run the formatter before committing Rust code",
            "add",
        ),
        ("Prefer tabs over spaces", "Prefer spaces over tabs", "add"),
        ("Use C++ for the parser", "Use C# for the parser", "add"),
        (
            "The port of the staging database is 5432",
            "The port of the staging database is 5433",
            "add",
        ),
        (
            "The port of the staging database is 5432",
            "Actually the port of the staging database is 5433",
            "update",
        ),
        (
            "The staging database is on port 5432",
            "The staging database is now on port 5433",
            "update",
        ),
        ("Service 3 uses Postgres", "Service 4 now uses Postgres", "add"),
        (
            "Integration tests must hit a real database",
            "Integration tests must never hit a real database",
            "update",
        ),
        (
            "Integration tests must hit a real database",
            "Integration tests must always run against a real database, never mocks",
            "update",
        ),
        (
            "Integration tests must hit a real database",
            "The integration tests hit the real database",
            "nothing",
        ),
        (
            "Integration tests must hit a real database",
            "Unit tests must never hit a real database",
            "add",
        ),
        ("Use tabs for indentation", "Use spaces for indentation instead", "update"),
        ("Use tabs for indentation", "Use spaces for indentation", "add"),
        ("We deploy to Europe on Tuesday", "We no longer deploy to Europe on Tuesday", "update"),
        ("We deploy to Europe on Tuesday", "We now deploy to Europe on Friday", "update"),
        ("We deploy to Europe on Tuesday", "We deploy to Asia on Tuesday", "add"),
        ("Deploy from main to production", "Deploy from main", "nothing"),
        ("Squash commits before merging", "Before merging, squash commits", "nothing"),
        ("Merge before review", "Merge after review", "add"),
        ("We use Postgres", "We use Postgres instead of MySQL", "update"),
        ("We use pnpm, not npm", "We use npm, not pnpm", "add"),
        ("Never commit without tests", "Never commit without tests.", "nothing"),
        ("Always use tabs", "Always use tabs for indentation in Go and Rust source files", "add"),
        ("Don't use mocks in tests any more", "Don't use mocks in tests", "nothing"),
        (
            "We're freezing merges after Thursday (2026-03-05)",
            "We're freezing merges after Friday (2026-03-06)",
            "add",
        ),
        (
            "We're freezing merges after Thursday (2026-03-05)",
            "Actually we're freezing merges after Friday (2026-03-06)",
            "update",
        ),
        ("集成测试必须连接真实数据库", "集成测试不要连接真实数据库", "update"),
        ("集成测试必须连接真实数据库", "集成测试一定要连接真实数据库", "nothing"),
        ("集成测试必须连接真实数据库", "单元测试不要连接真实数据库", "add"),
        ("提交信息用英文写", "提交信息都用英文写", "nothing"),
        ("Go 文件用制表符缩进", "YAML 文件不要用制表符缩进", "add"),
        ("缩进用制表符", "缩进改成空格", "update"),
        ("我们的部署在周二进行", "我们的部署改到周四进行", "update"),
        ("我们的部署在周二进行", "我们的部署在周四进行", "add"),
        ("小王负责支付服务", "小王负责搜索服务", "add"),
        ("我们用 pnpm 安装依赖", "我们不再用 pnpm 安装依赖", "update"),
        ("数据库端口是 5432", "数据库端口现在是 5433", "update"),
        (
            "Alice owns the billing service",
            "Actually Rust files use tabs in the billing service",
            "add",
        ),
        ("Go files use tabs", "Actually Rust files use tabs", "add"),
        ("We meet on the second floor of team A", "We meet on the second floor of team B", "add"),
        ("Send invoices to the US team", "Send invoices to the UK team", "add"),
        ("Use mocks in tests", "Use no mocks in unit tests of the parser any more", "add"),
        ("Version 2 is the stable one", "Actually version 2 is the v3 one", "add"),
        ("not", "never", "nothing"),
        ("not", "Postgres", "add"),
    ],
)
def test_each_pair_has_its_verdict(old: str, new: str, decision: str) -> None:
    """A restatement adds or does nothing, a marked correction updates, the rest is new."""
    assert compare(said(new), said(old), marked(new)) is Sameness(decision)


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("from now on use tabs", NOT_MARKED),
        ("use logging instead of print", NOT_MARKED),
        ("use spaces instead", INSTEAD),
        ("don't use tabs any more", INSTEAD),
        ("the port is now 5433", NOW),
        ("actually the port is now 5433", INSTEAD),
        ("端口现在是 5433", NOW),
        ("不再用制表符", INSTEAD),
    ],
)
def test_signs_of_change_are_told_apart(text: str, change: int) -> None:
    """Only words that take something back are a strong sign; now alone is a weak one."""
    assert marked(text) == change


@given(st.text(max_size=200), st.sampled_from([NOT_MARKED, NOW, INSTEAD]))
def test_the_same_again_is_nothing_new(text: str, change: int) -> None:
    """Whatever was said: said once more it changes nothing."""
    assert compare(said(text), said(text), change) is Sameness.NOTHING
