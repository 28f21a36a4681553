"""A store with a few memories, and what models say that work on it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memd.core.settings import Settings
from memd.model.port import Reply
from memd.state import cursors, dreams, job_rows, journal, runs
from memd.state.database import open_database
from tests.dream.bench import Bench
from tests.scripted_model import calls, says

ON = Settings()
ANA = "Ana owns the deploys of the shop and does them on Tuesdays at 10:00 from the office."
BO = "Bo owns the rollbacks of the shop and is called at extension 4711 when one is needed."


@contextmanager
def filled(folder: Path) -> Iterator[Bench]:
    """Set up a store with a few memories for the length of the block."""
    schemas = (journal.SCHEMA, cursors.SCHEMA, job_rows.SCHEMA, dreams.SCHEMA, runs.SCHEMA)
    database = open_database(str(folder / "state.db"), schemas)
    made = Bench(folder, database)
    made.write("deploys.md", f"{ANA}\n")
    made.write("rollbacks.md", f"{BO}\n")
    for name in ("board", "tracker", "wiki", "dashboard"):
        made.write(f"{name}.md", f"The {name} is at https://{name}.example and holds the rest.\n")
    (made.memory / "MEMORY.md").write_text("# Mine\n\n- [Deploys](deploys.md) — how they go\n")
    try:
        yield made
    finally:
        database.close()


def read(*names: str) -> Reply:
    """Return a reply that reads memories."""
    return calls(*(("Read", {"file_path": name}) for name in names))


def write(name: str, text: str) -> tuple[str, dict[str, str]]:
    """Return a call that writes a file."""
    return "Write", {"file_path": name, "content": text}


def both(bench: Bench) -> str:
    """Return the memory that says what two say."""
    return (bench.memory / "deploys.md").read_text() + f"\n{BO}\n"


def merging(bench: Bench, *more: tuple[str, dict[str, str]]) -> tuple[Reply, ...]:
    """Return what a model says that merges two memories well."""
    return (
        read("deploys.md", "rollbacks.md", "board.md", "MEMORY.md"),
        calls(
            write("deploys.md", both(bench)),
            write("rollbacks.md", "removed: merged into deploys.md"),
            *more,
            first=10,
        ),
        says("I put the rollbacks beside the deploys."),
    )
