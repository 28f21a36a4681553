"""Play stories on memd with one bug in it: ``python -m tests.context.planted NUMBER STORIES``.

The bug is put into the source while it is imported, so nothing is copied or written. What is
printed is the name of the property that noticed; the exit status is 0 when none did.
"""

import sys
import tempfile
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType

from tests.context.mutants import MUTANTS, Mutant

ROOT = Path(__file__).resolve().parents[2]


class _Loader(SourceFileLoader):
    """Compiles a module with one text in its source replaced."""

    def __init__(self, name: str, mutant: Mutant) -> None:
        super().__init__(name, str(ROOT / mutant.path))
        self._mutant = mutant

    def get_code(self, fullname: str) -> CodeType:
        """Return the code of the changed source; no compiled file is read."""
        text = Path(self.get_filename(fullname)).read_text("utf-8")
        changed = text.replace(self._mutant.old, self._mutant.new)
        return compile(changed, self.get_filename(fullname), "exec")


class _Finder:
    """Finds the module that has the bug."""

    def __init__(self, mutant: Mutant) -> None:
        self._name = mutant.path.removesuffix(".py").replace("/", ".")
        self._loader = _Loader(self._name, mutant)

    def find_spec(
        self, name: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where the module is, ``None`` for all others."""
        if name != self._name:
            return None
        return spec_from_file_location(name, self._loader.path, loader=self._loader)


def main(number: int, stories: int) -> int:
    """Play until a property notices; return the exit status."""
    sys.meta_path.insert(0, _Finder(MUTANTS[number]))
    # Imported now, so that they get the module with the bug.
    from tests.context.planners import StoredPlanner  # noqa: PLC0415
    from tests.context.properties import check  # noqa: PLC0415
    from tests.context.stories import play  # noqa: PLC0415

    first = MUTANTS[number].first
    for seed in range(first, first + stories):
        with tempfile.TemporaryDirectory() as folder, StoredPlanner(Path(folder)) as planner:
            try:
                play(seed, planner, folder, check)
            except AssertionError as error:
                sys.stdout.write(f"{error}\n")
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
