"""Join all views into one: each real file once, and identical texts once. Pure."""

from collections.abc import Iterable

from msgspec.structs import replace

from memd.instructions.loading import EXTERNAL
from memd.instructions.values import InstructionDisk, InstructionFile, Resolution


def united(views: Iterable[Resolution], disk: InstructionDisk) -> Resolution:
    """Return several views as one, in their order.

    A file that any view loads is loaded. A file that none loads has the reason of the first view.
    """
    files: dict[str, InstructionFile] = {}
    texts: dict[str, str] = {}
    problems: dict[str, None] = {}
    for view in views:
        problems |= dict.fromkeys(view.problems)
        for file in view.files:
            real = disk.real(file.path)
            if file.loaded and not files.get(real, _NO_FILE).loaded:
                files.pop(real, None)  # it is listed at the place of its loading
                texts[file.path] = view.texts[file.path]
            files.setdefault(real, file)
    result = tuple(_without_equal_texts(files.values(), texts))
    external = tuple(file.path for file in result if file.why_not == EXTERNAL)
    return Resolution(result, texts, tuple(problems), external)


_NO_FILE = InstructionFile("", "", "", loaded=False)


def _without_equal_texts(
    files: Iterable[InstructionFile], texts: dict[str, str]
) -> Iterable[InstructionFile]:
    """Yield the files; of those with equal texts only the first is loaded.

    The texts of the others are removed from ``texts``.
    """
    paths: dict[str, str] = {}  # the first path of each text
    for file in files:
        # The text of an import may be "", since it stands in that of the importing file.
        text = texts[file.path] if file.loaded else ""
        first_path = paths.setdefault(text, file.path) if text else file.path
        if first_path == file.path:
            yield file
        else:
            del texts[file.path]
            yield replace(file, chars=0, loaded=False, why_not=f"{first_path} has the same text")
