"""Which memories fit a prompt."""

from hypothesis import given, settings
from hypothesis import strategies as st

from memd.search.index import Entry, Index
from memd.search.ranking import BELOW_FLOOR, BEYOND_LIMIT, Ranked, answered

STORE = (
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


def _entry(path: str, *, mtime: int = 0, description: str = "") -> Entry:
    return Entry(path, (1, 1, 1), mtime, "", description, "", "")


def _index(*entries: Entry) -> Index:
    index = Index(None)
    index.update(entries)
    return index


def _store() -> Index:
    return _index(
        *(
            Entry(path, (1, at, 1), at, name, description, kind, body)
            for at, (path, name, description, kind, body) in enumerate(STORE)
        )
    )


def _paths(ranked: tuple[Ranked, ...]) -> list[str]:
    return [item.path for item in answered(ranked)]


def test_prompts_of_real_work_find_their_memory() -> None:
    """What helps with a prompt comes first."""
    index = _store()
    first = {prompt: _paths(index.rank(prompt, 5))[:1] for prompt in ANSWERED}
    assert first == {prompt: [path] for prompt, path in ANSWERED.items()}


def test_prompts_that_need_nothing_get_nothing() -> None:
    """At least nine in ten of the prompts that no memory helps with are answered with silence."""
    index = _store()
    noisy = [prompt for prompt in NOTHING if _paths(index.rank(prompt, 5))]
    assert len(noisy) <= len(NOTHING) // 10


def test_limit_and_skip() -> None:
    """Never more than the limit comes back, never what is skipped."""
    index = _store()
    text = "user test merge deploy database"
    best = _paths(index.rank(text, 3, floor=False))
    assert len(best) == 3
    assert best[0] not in _paths(index.rank(text, 9, {best[0]}.__contains__, floor=False))
    assert _paths(index.rank("database", 0, floor=False)) == []


def test_what_is_cut_says_why() -> None:
    """What is weighed and not answered is below the floor or beyond the limit."""
    weighed = _store().rank("where do we track ingestion bugs, and is the merge freeze on?", 1)
    assert [item.cut for item in weighed].count("") == 1
    assert {item.cut for item in weighed} == {"", BEYOND_LIMIT}
    assert list(weighed) == sorted(weighed, key=lambda item: -item.score)
    assert {item.cut for item in _store().rank("show me the diff", 5)} == {BELOW_FLOOR}


def test_recency_decides_between_equals() -> None:
    """Of two that fit equally the newer comes first; then the path decides."""
    index = _index(
        *(_entry(path, mtime=at, description="quorum") for path, at in (("b", 1), ("a", 1))),
        _entry("new", mtime=2, description="quorum"),
    )
    assert _paths(index.rank("quorum", 5, floor=False)) == ["new", "a", "b"]


def test_neighbouring_words_count_more() -> None:
    """A memory that holds two words of the query side by side beats one that holds them apart."""
    index = _index(
        _entry("apart", mtime=9, description="quorum decides, lease renewal needs none"),
        _entry("beside", description="quorum lease decides, renewal needs none"),
    )
    assert _paths(index.rank("quorum lease", 1)) == ["beside"]


def test_whom_a_memory_is_about_counts_more() -> None:
    """A memory that begins with a name of the prompt comes before one that mentions it."""
    index = _index(
        _entry("mention", mtime=9, description="Release lead is Priya"),
        _entry("subject", description="Priya leads the release"),
    )
    assert _paths(index.rank("when is Priya away?", 2, floor=False)) == ["subject", "mention"]


_TEXTS = st.lists(
    st.sampled_from(["quorum", "lease", "shard", "renewal"]), min_size=1, max_size=4
).map(" ".join)


@settings(max_examples=50)
@given(st.dictionaries(st.sampled_from("abcdef"), _TEXTS, min_size=1), st.data())
def test_history_leaves_no_trace(texts: dict[str, str], data: st.DataObject) -> None:
    """An index after additions, changes and removals answers as one that is built afresh."""
    entries = [_entry(path, description=text) for path, text in texts.items()]
    fresh, lived = _index(*entries), Index(None)
    lived.update(_entry(path, description="shard lease") for path in "abcxyz")
    lived.update(data.draw(st.permutations(entries)))
    lived.remove(set("abcxyz") - texts.keys())
    query = data.draw(_TEXTS)
    assert lived.rank(query, 5) == fresh.rank(query, 5)
