"""Read the files that belong to the program and lie beside its modules."""

import os

_ROOT = os.path.dirname(os.path.dirname(__file__))


def read_text(path: str) -> str:
    """Return the text of a file by its path below the package, as in ``model/templates/json.md``.

    ``importlib.resources`` does the same and imports archives and temporary files for it. Blocks.
    """
    with open(os.path.join(_ROOT, path), encoding="utf-8") as file:
        return file.read()
