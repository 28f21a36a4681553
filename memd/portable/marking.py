"""The mark that says of a memory that an import brought it. Pure."""

from contextlib import suppress

from memd.core.values import FOREIGN, IMPORT, least_trusted
from memd.documents import document
from memd.documents.document import FrontmatterNotEditableError


def marked(content: bytes, path: str) -> bytes | None:
    """Return a memory with the mark of an import in its head.

    What calls itself less trusted stays so. A head that is damaged stays as it is and is believed
    by nobody. ``None`` where a head claims more than an import may, and cannot be changed.
    """
    claim = document.parse(content, path)
    if claim.damaged:
        return content
    wanted = least_trusted(IMPORT, *filter(FOREIGN.__contains__, (claim.origin,)))
    if claim.origin == wanted:
        return content
    mark = {"metadata.origin": wanted}
    with suppress(FrontmatterNotEditableError):
        return document.with_fields(content, mark)
    with suppress(FrontmatterNotEditableError):
        return document.with_fields(document.strict(content, None, path), mark)
    return content if claim.origin in ("", *FOREIGN) else None
