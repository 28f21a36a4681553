"""Errors that stop an export or import as a whole; faults of single files are only listed."""

from memd.base.errors import MemdError
from memd.base.names import printable
from memd.portable.values import SourceKind


class DestinationError(MemdError):
    """An export cannot be written to its destination; nothing was left there."""

    code = 1072
    kind = "destination_refused"

    def __init__(self, path: str, why: str) -> None:
        shown = printable(path)
        super().__init__(f"the export cannot be written to {shown}: {why}", path=shown)


class SourceMissingError(MemdError):
    """The source of an import does not exist or cannot be read."""

    code = 1073
    kind = "source_missing"

    def __init__(self, path: str, why: str) -> None:
        shown = printable(path)
        super().__init__(f"{shown} cannot be imported: {why}", path=shown)


class SourceDamagedError(MemdError):
    """An archive is damaged or dangerous; nothing of it was taken."""

    code = 1074
    kind = "source_damaged"
    hint = "get it again from where it was made, or import a part of it"

    def __init__(self, name: str, why: str) -> None:
        shown = printable(name)
        super().__init__(f"nothing was taken: {shown}: {why}", name=shown)


class KindUnknownError(MemdError):
    """The kind of the files to import was not recognised."""

    code = 1075
    kind = "kind_unknown"
    hint = (
        "name the kind with --from; of other tools write a list, one memory a line after '- ', as "
        "docs/migration.md shows for each, and import it with --from text"
    )

    def __init__(self, path: str, why: str = "its files look like nothing that memd reads") -> None:
        shown = printable(path)
        known = ", ".join(SourceKind)
        super().__init__(f"{shown}: {why}; the kinds are {known}", path=shown)


class VersionTooNewError(MemdError):
    """An archive was written by a memd that is newer than this one."""

    code = 1076
    kind = "version_too_new"
    hint = "install a newer memd"

    def __init__(self, version: int, known: int) -> None:
        super().__init__(
            f"the archive has version {version} of the format, and this memd reads up to {known}",
            version=version,
            known=known,
        )


class SourceRefusedError(MemdError):
    """A source has nothing of its kind to import, or says that it must not be imported."""

    code = 1077
    kind = "source_refused"

    def __init__(self, kind: str, why: str) -> None:
        super().__init__(f"this {kind} source is not imported: {why}", source=kind)
