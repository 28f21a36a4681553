"""Which memories fit a prompt."""

from collections import Counter
from collections.abc import Sequence

from memd.recall.query import parse
from memd.recall.rank import (
    BELOW_FLOOR,
    BEYOND_LIMIT,
    Ranked,
    heaviest_first,
    rank,
    score,
    weigh,
    with_cuts,
)
from memd.state.search import SearchRow
from memd.text.words import search_text

MEMORIES = (
    # path, name, description, type, body
    (
        "user_role.md",
        "user-role",
        "Backend engineer, ten years of Go, new to React and this frontend",
        "user",
        "Knows Go and PostgreSQL deeply. Explain frontend ideas by analogy to backend ones.",
    ),
    (
        "testing.md",
        "testing-policy",
        "Integration tests must hit a real database, never mocks",
        "feedback",
        "**Why:** a mocked test hid a broken migration.\n**How to apply:** start the container.",
    ),
    (
        "terse.md",
        "terse-answers",
        "Keep replies short; no summary at the end of each answer",
        "feedback",
        "Stop summarising what was just done; the diff can be read.",
    ),
    (
        "bundled.md",
        "one-bundled-pr",
        "For refactors in this area one bundled pull request is preferred over many small ones",
        "feedback",
        "Confirmed after the auth refactor: splitting would be churn.",
    ),
    (
        "freeze.md",
        "merge-freeze",
        "Merge freeze from 2026-03-05 for the mobile release branch",
        "project",
        "Non-critical merges stop then.\n**How to apply:** flag pull requests after that date.",
    ),
    (
        "auth.md",
        "auth-rewrite",
        "Auth middleware rewrite is driven by legal, session token storage compliance",
        "project",
        "Legal flagged how session tokens are stored. Favour compliance over ergonomics.",
    ),
    (
        "billing.md",
        "billing-deadline",
        "Invoice export must ship by 2026-04-02 for the auditors",
        "project",
        "Auditors need the CSV export of invoices.",
    ),
    (
        "tracker.md",
        "bug-tracker",
        "Pipeline bugs are tracked in Linear project INGEST",
        "reference",
        "Check Linear INGEST for context on ingestion tickets.",
    ),
    (
        "dashboard.md",
        "latency-dashboard",
        "Grafana board api-latency is what on-call watches",
        "reference",
        "Look there when changing request handling.",
    ),
    (
        "deploy.md",
        "deploy-windows",
        "Deployments only before 15:00 on weekdays",
        "project",
        "**Why:** the last evening deploy paged everybody.",
    ),
    ("pnpm.md", "uses-pnpm", "User prefers pnpm over npm", "feedback", "Use pnpm for installs."),
    (
        "naming.md",
        "field-naming",
        "接口字段命名统一使用下划线风格",
        "feedback",
        "所有接口字段使用 snake_case。前端代码生成器只支持下划线。",
    ),
    (
        "tenants.md",
        "tenant-cache",
        "user_service.py caches tenants for five minutes",
        "project",
        "UserService.get_tenant is cached; invalidate after role changes.",
    ),
    (
        "absence.md",
        "owner-absence",
        "Priya owns the search cluster and is away until 2026-05-11",
        "project",
        "Ask Tomas about the search cluster meanwhile.",
    ),
)

ANSWERED = {
    "Write a test for the users endpoint": "testing.md",
    "how should I write tests here?": "testing.md",
    "run the integration tests": "testing.md",
    "should we mock the database in this suite?": "testing.md",
    "can we merge this on March 6th?": "freeze.md",
    "when does the freeze begin": "freeze.md",
    "why are we rewriting the authentication middleware": "auth.md",
    "explain this React component to me": "user_role.md",
    "where do we track ingestion bugs?": "tracker.md",
    "the api got slow, where can I see request latency?": "dashboard.md",
    "npm install fails, add lodash": "pnpm.md",
    "is it fine to deploy this at 17:00?": "deploy.md",
    "refactor the session module; one pull request or several?": "bundled.md",
    "新增一个接口，字段怎么命名?": "naming.md",
    "Fix get_tenant returning the wrong role": "tenants.md",
    "who can help with the search cluster?": "absence.md",
    "what is due on 2026-04-02?": "billing.md",
    "what is due on April 2nd, 2026?": "billing.md",
    "edit src/user_service.py to log misses": "tenants.md",
    "plan the invoice export": "billing.md",
}

NOTHING = (
    "thanks, looks good",
    "yes, do it please",
    "ok go on",
    "commit and push this",
    "rename the variable x to total",
    "fix the typo in the comment",
    "what time is it in Tokyo?",
    "make the button blue",
    "continue where you left off",
    "why does this loop never end?",
    "谢谢，很好",
    "再跑一遍测试",
    "undo the last change",
    "show me the diff",
    "format the file and run the linter",
    "the build is green now, nice work",
    "add a docstring to this function",
    "explain this regular expression",
    "try again with the other flag",
    "update the readme",
    "what does this function return?",
    "is there a race here?",
    "bump the version",
    "split this file in two",
    "why is the type any?",
    "write a commit message",
    "fix the lint errors",
    "把这个函数改名",
    "提交代码",
    "sort the list in reverse order",
)


def _row(memory: tuple[str, str, str, str, str], mtime: int) -> SearchRow:
    path, name, description, kind, _ = memory
    return SearchRow(path, "", mtime, name, description, kind or None, *search_text(*memory))


def _described(path: str, description: str, mtime: int = 0) -> SearchRow:
    return _row((path, "", description, "", ""), mtime)


ROWS = [_row(memory, number) for number, memory in enumerate(MEMORIES)]


def _score(rows: Sequence[SearchRow], prompt: str) -> list[Ranked]:
    counts = Counter(word for row in rows for word in set(row.words.split()))
    terms = weigh(parse(prompt), counts, len(rows))
    found = {
        word: [number for number, row in enumerate(rows) if f" {word} " in row.words]
        for word in counts
    }
    candidates = heaviest_first(terms, found, range(len(rows)))
    scored = [score(terms, rows[number], forms) for number, forms, _ in candidates]
    return list(filter(None, scored))


def _paths(
    rows: Sequence[SearchRow], prompt: str, limit: int = 5, *, floor: bool = True
) -> list[str]:
    return [item.row.path for item in rank(_score(rows, prompt), limit, floor=floor)]


def test_prompts_of_real_work_find_their_memory() -> None:
    """What helps with a prompt comes first."""
    first = {prompt: _paths(ROWS, prompt)[:1] for prompt in ANSWERED}
    assert first == {prompt: [path] for prompt, path in ANSWERED.items()}


def test_prompts_that_need_nothing_get_nothing() -> None:
    """At least nine in ten of the prompts that no memory helps with are answered with silence."""
    noisy = [prompt for prompt in NOTHING if _paths(ROWS, prompt)]
    assert len(noisy) <= len(NOTHING) // 10


def test_never_more_than_the_limit() -> None:
    """At most as many memories come back as the caller takes."""
    assert len(_paths(ROWS, "user test merge deploy database", 3, floor=False)) == 3
    assert _paths(ROWS, "database", 0, floor=False) == []


def test_what_is_cut_says_why() -> None:
    """What is ranked and not answered is below the floor or beyond the limit."""
    prompt = "where do we track ingestion bugs, and is the merge freeze on?"
    ranked = with_cuts(_score(ROWS, prompt), 1)
    assert [item.cut for item in ranked].count("") == 1
    assert {item.cut for item in ranked} == {"", BEYOND_LIMIT}
    assert ranked == sorted(ranked, key=lambda item: -item.score)
    assert {item.cut for item in with_cuts(_score(ROWS, "show me the diff"), 5)} == {BELOW_FLOOR}


def test_the_parts_make_the_score() -> None:
    """The parts that an explanation shows sum up to the score."""
    for item in _score(ROWS, "when is Priya away, and who owns the search cluster?"):
        assert abs(sum(item.parts.values()) - item.score) < 1e-5


def test_recency_decides_between_equals() -> None:
    """Of two that fit equally the newer comes first; then the path decides."""
    rows = [_described(path, "quorum", mtime) for path, mtime in (("b", 1), ("a", 1), ("new", 2))]
    assert _paths(rows, "quorum", floor=False) == ["new", "a", "b"]


def test_neighbouring_words_count_more() -> None:
    """A memory that holds two words of the query side by side beats one that holds them apart."""
    rows = [
        _described("apart", "quorum decides, lease renewal needs none", 9),
        _described("beside", "quorum lease decides, renewal needs none"),
    ]
    assert _paths(rows, "quorum lease", 1) == ["beside"]


def test_whom_a_memory_is_about_counts_more() -> None:
    """A memory that begins with a name of the prompt comes before one that mentions it."""
    rows = [
        _described("mention", "Release lead is Priya", 9),
        _described("subject", "Priya leads the release"),
    ]
    assert _paths(rows, "when is Priya away?", 2, floor=False) == ["subject", "mention"]
