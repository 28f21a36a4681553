"""One export, run as a process of its own so that it can be killed or refused a system call.

Usage: ``exporting.py <root> folder|packed prepare|run``. ``prepare`` makes memories and a history,
``run`` exports them to ``<root>/out`` or ``<root>/out.tar.gz``. Prints ``acknowledged`` when it is
there, ``failed`` and the sentence for an error that names the destination.
"""

import sys
from pathlib import Path

from memd.base.errors import Refused

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from memd.portable.destination import check_destination
from memd.portable.exporting import DirectoryExport, Export
from memd.portable.values import ExportRequest
from memd.portable.writing import Staging
from memd.projects.known import KnownProject
from memd.store.disk import real_disk
from tests.crash.core import open_core
from tests.crash.operation import prepare
from tests.store.bench import Bench, open_bench

NAMES = {"folder": "out", "packed": "out.tar.gz"}


def export(bench: Bench, destination: Path) -> None:
    """Write an archive, as the service does in its worker thread."""
    project = KnownProject(bench.directory, "/srv/app", (), str(bench.root))
    request = ExportRequest(str(destination), (project,))
    staging = Staging(check_destination(request.destination, ()), real_disk())
    try:
        staging.open()
        taken = Export(staging, request, "1")
        work = DirectoryExport(taken, "app", "projects/app/memory/", bench.directory)
        work.prepare()
        work.export_memories(bench.directory)
        taken.finish()
    finally:
        staging.close()


def main(root: Path, shape: str, step: str) -> None:
    """Do one step."""
    if step == "prepare":
        with open_core(root) as core:
            prepare(core)
        return
    with open_bench(root) as bench:
        try:
            export(bench, root / "archive" / NAMES[shape])
        except Refused as error:
            sys.stdout.write(f"failed {error.sentence}\n")
        else:
            sys.stdout.write("acknowledged\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
