"""What models want of a dream: twenty sensible wishes. Written before any dream was.

An edit is the whole new text of a file, or a piece of it and what it becomes. ``tools`` are the
calls by which a model that knows its tools does the same; without them it makes the edits.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Edit = str | tuple[str, str]
Call = tuple[str, Mapping[str, object]]
INDEX = "MEMORY.md"
LOG = "logs/2026/11/2026-11-20.md"


def memory(kind: str, body: str, description: str = "How it is", name: str = "a") -> str:
    """Return the text of a memory."""
    head = f"name: {name}\ndescription: {description}\nmetadata:\n  node_type: memory\n"
    stamps = "  originSessionId: s\n  modified: 2026-02-01T10:00:00Z\n"
    return f"---\n{head}  type: {kind}\n{stamps}---\n\n{body}\n"


def project(body: str, description: str = "How it is") -> str:
    """Return a project memory."""
    return memory("project", body, description)


def reference(body: str, description: str = "Where it is") -> str:
    """Return a reference memory."""
    return memory("reference", body, description)


def rule(body: str, description: str = "A rule") -> str:
    """Return a rule of the person's."""
    return memory("feedback", body, description)


@dataclass(frozen=True)
class Case:
    """One night: what there is, what a model does to it, and what it read beside.

    ``index`` are lines above the pointers.
    """

    name: str
    files: Mapping[str, str]
    edits: Mapping[str, Edit]
    log: str = ""
    transcript: str = ""
    index: str = ""
    ages: Mapping[str, int] = field(default_factory=dict)  # days; 1 where nothing is said
    tools: Sequence[Call] = ()


PORTS = {
    "api.md": project("The API listens on port 8080.\n\nThe admin page listens on port 9090."),
}
DEPLOY = project("Deploys go out on Thursdays at 14:00. Ann Weber approves them.", "When we deploy")
RELEASE = project("Releases are tagged `v2.x` on the branch `release` by Ben.", "How we release")
NAMES = {
    "owners.md": project("Ann owns the billing service.\n\nBo owns the search service."),
}
STRICT = rule("Never push to `main` without a review.\n\n**Why:** a push broke the build in May.")

WISHES: tuple[Case, ...] = (
    Case(
        "merge two project notes",
        {"deploy.md": DEPLOY, "release.md": RELEASE},
        {
            "deploy.md": project(
                "Deploys go out on Thursdays at 14:00. Ann Weber approves them.\n\n"
                "Releases are tagged `v2.x` on the branch `release` by Ben.",
                "When we deploy, how we release",
            ),
            "release.md": "removed: merged into deploy.md",
        },
        tools=(("Merge", {"into": "deploy.md", "from": ["release.md"]}),),
    ),
    Case(
        "merge in other words",
        {
            "cache.md": project("The cache lives in Redis on host `cache-1`, port 6379."),
            "redis.md": project(
                "We use Redis for the cache. It evicts keys after 600 seconds on `cache-1`."
            ),
        },
        {
            "cache.md": project(
                "The cache lives in Redis on host `cache-1`, port 6379; keys are evicted after "
                "600 seconds."
            ),
            "redis.md": "removed: merged into cache.md",
        },
        tools=(("Merge", {"into": "cache.md", "from": ["redis.md"]}),),
    ),
    Case(
        "drop a date that is over",
        {
            "freeze.md": project(
                "The code freeze lasts until 2026-02-13.\n\nHotfixes go through Carla."
            )
        },
        {"freeze.md": project("Hotfixes go through Carla.")},
    ),
    Case(
        "remove a note whose date is over",
        {"offsite.md": project("The offsite is on 2026-02-05 in Lisbon.")},
        {"offsite.md": "removed: the offsite was on 2026-02-05, which is over"},
        tools=(("Expire", {"path": "offsite.md", "reason": "2026-02-05 is over"}),),
    ),
    Case(
        "tighten a description",
        {
            "db.md": reference(
                "The replica of the orders database is `orders-ro.internal`.",
                "This note says where the read only replica of the orders database can be found",
            )
        },
        {
            "db.md": reference(
                "The replica of the orders database is `orders-ro.internal`.",
                "Replica of the orders database",
            )
        },
    ),
    Case(
        "tighten a text",
        {
            "stage.md": project(
                "At the moment our staging environment is located at `stage.example.org`, and it "
                "is, as far as we know, rebuilt every night at 02:30 by the job `rebuild-stage`."
            )
        },
        {
            "stage.md": project(
                "Staging is at `stage.example.org`, rebuilt every night at 02:30 by the job "
                "`rebuild-stage`."
            )
        },
    ),
    Case(
        "split a note",
        {
            "mixed.md": project(
                "Invoices are sent by the worker `mailer` at 06:00.\n\n"
                "The mobile app is built with Flutter 3.19."
            )
        },
        {
            "mixed.md": project("Invoices are sent by the worker `mailer` at 06:00."),
            "mobile.md": project("The mobile app is built with Flutter 3.19.", "The mobile app"),
        },
    ),
    Case(
        "lead a link on after a merge",
        {
            "deploy.md": DEPLOY,
            "release.md": RELEASE,
            "start.md": project("Begin with [the releases](release.md)."),
        },
        {
            "deploy.md": (
                "approves them.",
                "approves them.\n\nReleases are tagged `v2.x` on the branch `release` by Ben.",
            ),
            "release.md": "removed: merged into deploy.md",
            "start.md": project("Begin with [the releases](deploy.md)."),
        },
        tools=(
            ("Merge", {"into": "deploy.md", "from": ["release.md"]}),
            (
                "Edit",
                {
                    "file_path": "start.md",
                    "old_string": "(release.md)",
                    "new_string": "(deploy.md)",
                },
            ),
        ),
    ),
    Case(
        "put a date behind a relative one",
        {"move.md": project("The office moves next Friday.")},
        {"move.md": project("The office moves next Friday (2026-02-27).")},
    ),
    Case(
        "correct a fact that a daily log corrects",
        {"deploy.md": DEPLOY},
        {"deploy.md": ("on Thursdays at 14:00", "on Tuesdays at 14:00")},
        log="- 11:02 Deploys go out on Tuesdays at 14:00 from now on, no longer on Thursdays.\n",
    ),
    Case(
        "take the older of two statements away",
        {
            "old.md": project("The nightly backup runs at 01:00.\n\nIt is kept in `vault-3`."),
            "new.md": project("The nightly backup runs at 03:15 since the move."),
        },
        {
            "new.md": project(
                "The nightly backup runs at 03:15 since the move.\n\nIt is kept in `vault-3`."
            ),
            "old.md": "removed: new.md is newer and says that the backup runs at 03:15",
        },
        ages={"old.md": 40, "new.md": 2},
        tools=(
            (
                "Supersede",
                {
                    "old": "old.md",
                    "by": "new.md",
                    "still_true": ["It is kept in `vault-3`."],
                    "reason": "the backup runs at 03:15",
                },
            ),
        ),
    ),
    Case(
        "save a fact of a daily log",
        {"team.md": project("Dora joined the platform team.")},
        {"team.md": project("Dora joined the platform team.\n\nEmil leads it since 2026-02-26.")},
        log="- 09:10 Emil leads the platform team since 2026-02-26.\n",
        tools=(
            (
                "Keep",
                {
                    "log": LOG,
                    "fact": "Emil leads the platform team since 2026-02-26.",
                    "into": "team.md",
                },
            ),
        ),
    ),
    Case(
        "save what a transcript says",
        {"ci.md": project("CI runs on Buildkite.")},
        {"ci.md": project("CI runs on Buildkite. The queue for macOS is `mac-m2`.")},
        transcript="ok so the Buildkite queue for macOS is `mac-m2`, that explains it",
    ),
    Case(
        "remove an exact copy of a rule",
        {"review.md": STRICT, "review-2.md": STRICT},
        {"review-2.md": "removed: merged into review.md"},
        tools=(("Merge", {"into": "review.md", "from": ["review-2.md"]}),),
    ),
    Case(
        "shorten a line of the index",
        {"deploy.md": DEPLOY},
        {INDEX: ("How it all goes and when", "Deploys on Thursdays at 14:00")},
        index="- [Deploys](deploy.md) — How it all goes and when\n",
    ),
    Case(
        "turn paragraphs into a list",
        {"env.md": project("`dev` is in Oslo.\n\n`prod` is in Kyoto.\n\n`demo` is in Quito.")},
        {"env.md": project("- `dev` is in Oslo.\n- `prod` is in Kyoto.\n- `demo` is in Quito.")},
    ),
    Case(
        "drop a sentence that stands twice",
        {
            "one.md": project("The wiki is read-only.\n\nTickets are on the board OPS."),
            "two.md": project("Tickets are on the board OPS.\n\nThe board is cleaned by Finn."),
        },
        {
            "one.md": project("The wiki is read-only.\n\nTickets: see [the board](two.md)."),
        },
    ),
    Case(
        "a copy under another name goes without a claim",
        {"deploy.md": DEPLOY, "deploys.md": DEPLOY},
        {"deploys.md": "removed: the same as deploy.md"},
        tools=(("Merge", {"into": "deploy.md", "from": ["deploys.md"]}),),
    ),
    Case(
        "join two sentences into one",
        {"owner.md": project("Gina owns the importer. The importer runs every 15 minutes.")},
        {"owner.md": project("Gina owns the importer, which runs every 15 minutes.")},
    ),
    Case(
        "evidence travels with its memory",
        {
            "tabs.md": project(
                'The parser is rewritten in Rust.\n\n**Said:** "in Rust" (2026-02-01)'
            ),
            "parser.md": project("The parser reads 4 formats."),
        },
        {
            "parser.md": project(
                "The parser reads 4 formats.\n\nThe parser is rewritten in Rust."
                '\n\n**Said:** "in Rust" (2026-02-01)'
            ),
            "tabs.md": "removed: merged into parser.md",
        },
        tools=(("Merge", {"into": "parser.md", "from": ["tabs.md"]}),),
    ),
)
