"""List what all views together load: each real file once, and identical texts once. Pure."""

from collections.abc import Iterable

from msgspec.structs import replace

from memd.instructions.loading import EXTERNAL
from memd.instructions.values import InstructionDisk, InstructionFile, Resolution


def united(views: Iterable[Resolution], disk: InstructionDisk) -> Resolution:
    """Return several views as one, in their order.

    A file that one view loads is loaded. One that none loads has the reason of the first.
    """
    files: dict[str, InstructionFile] = {}
    texts: dict[str, str] = {}
    problems: dict[str, None] = {}
    for view in views:
        problems |= dict.fromkeys(view.problems)
        for file in view.files:
            real = disk.real(file.path)
            if file.loaded and not files.get(real, _NONE).loaded:
                files.pop(real, None)  # it is listed where it is loaded
                texts[file.path] = view.texts[file.path]
            files.setdefault(real, file)
    result = tuple(_once(files.values(), texts))
    external = tuple(file.path for file in result if file.why_not == EXTERNAL)
    return Resolution(result, texts, tuple(problems), external)


_NONE = InstructionFile("", "", "", loaded=False)


def _once(files: Iterable[InstructionFile], texts: dict[str, str]) -> Iterable[InstructionFile]:
    """Yield the files, of those with one text only the first as loaded; drop the other texts."""
    first: dict[str, str] = {}
    for file in files:
        text = texts[file.path] if file.loaded else ""  # an import stands in another's text
        same = first.setdefault(text, file.path) if text else file.path
        if same == file.path:
            yield file
        else:
            del texts[file.path]
            yield replace(file, chars=0, loaded=False, why_not=f"{same} has the same text")
