"""Errors that stop an export or import as a whole; faults of single files are only listed."""

from memd.base.errors import Invalid, NotFound, Refused
from memd.base.names import printable
from memd.portable.values import SourceKind


def destination_refused(path: str, why: str) -> Refused:
    """Return the error that an export cannot be written to its destination."""
    shown = printable(path)
    return Refused(f"the export cannot be written to {shown}: {why}", path=shown)


def source_missing(path: str, why: str) -> NotFound:
    """Return the error that the source of an import does not exist or cannot be read."""
    shown = printable(path)
    return NotFound(f"{shown} cannot be imported: {why}", path=shown)


def source_damaged(name: str, why: str) -> Invalid:
    """Return the error that an archive is damaged or dangerous; nothing of it was taken."""
    shown = printable(name)
    return Invalid(
        f"nothing was taken: {shown}: {why}",
        hint="get it again from where it was made, or import a part of it",
        name=shown,
    )


def kind_unknown(path: str, why: str = "its files look like nothing that memd reads") -> Invalid:
    """Return the error that the kind of the files to import was not recognised."""
    shown = printable(path)
    known = ", ".join(SourceKind)
    return Invalid(
        f"{shown}: {why}; the kinds are {known}",
        hint="name the kind with --from; of other tools write a list, one memory a line after "
        "'- ', as docs/migration.md shows for each, and import it with --from text",
        path=shown,
    )


def source_refused(kind: str, why: str) -> Refused:
    """Return the error that a source has nothing of its kind to import."""
    return Refused(f"this {kind} source is not imported: {why}", source=kind)
