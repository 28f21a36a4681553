"""Build the views of proposals for a person, with a diff of each file. Pure."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from memd.base.names import printable
from memd.base.text import iso_time, sha256
from memd.model.port import LOCAL
from memd.state.proposals import OPEN, Proposal, ProposedEdit
from memd.text.unified import CHARACTERS, bounded

_MOST_FILES = 2000  # in one answer
_MOST_CHARACTERS = 500_000  # of all diffs in one answer, so that it fits a message
_NO_ROOM = "… no room in this answer: look at this proposal alone\n"


class FileView(Struct, frozen=True):
    """One file of a proposal. ``action`` is created, changed or removed.

    ``stale`` says that the file changed since the dream read it. ``diff`` is a unified diff from
    the text that the dream read to the one that it proposes, cut if it is long.
    """

    path: str
    action: str
    state: str
    reason: str
    merged_into: str
    stale: bool
    diff: str


class ProposalView(Struct, frozen=True):
    """A proposal: ``state`` is open, accepted, partly or rejected, ``reason`` that of a refusal.

    ``problems`` say why it was kept back or what is wrong with it; ``at`` is ISO 8601 in UTC.
    """

    id: str
    at: str
    job: str
    engine: str
    state: str
    reason: str
    problems: tuple[str, ...]
    said: str
    files: tuple[FileView, ...]


def paths_of(proposals: Sequence[Proposal]) -> tuple[str, ...]:
    """Return the paths of the first 2,000 files of these proposals, each once."""
    all_paths = [edit.path for proposal in proposals for edit in proposal.edits]
    return tuple(dict.fromkeys(all_paths[:_MOST_FILES]))


def views(proposals: Sequence[Proposal], live: Mapping[str, bytes]) -> tuple[ProposalView, ...]:
    """Return the views of proposals; ``live`` has the contents of their existing files by path."""
    result: list[ProposalView] = []
    files_left, characters_left = _MOST_FILES, _MOST_CHARACTERS
    for proposal in proposals:
        edits = proposal.edits
        files: list[FileView] = []
        for edit in edits[:files_left]:
            view = _file_view(edit, live.get(edit.path), characters_left)
            characters_left -= len(view.diff)
            files.append(view)
        files_left -= len(files)
        hidden = len(edits) - len(files)
        notes = (f"{hidden} more files have no room in this answer",) if hidden else ()
        result.append(_proposal_view(proposal, notes, tuple(files)))
    return tuple(result)


def _proposal_view(
    proposal: Proposal, notes: tuple[str, ...], files: tuple[FileView, ...]
) -> ProposalView:
    """Return the view of a proposal with its files, and notes about it as problems."""
    return ProposalView(
        id=proposal.id,
        at=iso_time(proposal.at),
        job=proposal.job,
        engine=proposal.engine or LOCAL,
        state=proposal.state,
        reason=proposal.reason,
        problems=(*proposal.problems, *notes),
        said=proposal.said,
        files=files,
    )


def _file_view(edit: ProposedEdit, live: bytes | None, characters: int) -> FileView:
    """Return the view of one file with a diff of at most ``characters``.

    ``live`` is the file's content now, ``None`` if there is no file.
    """
    live_hash = "" if live is None else sha256(live)
    before = edit.before
    if before is None and live_hash == edit.base:  # the file is as the dream read it
        before = live
    action = "changed" if edit.base else "created"
    diff = _NO_ROOM
    if characters > 0:
        diff = bounded(printable(edit.path), before, edit.content, min(CHARACTERS, characters))
    return FileView(
        path=edit.path,
        action="removed" if edit.content is None else action,
        state=edit.state,
        reason=edit.reason,
        merged_into=edit.merged_into,
        stale=edit.state == OPEN and live_hash != edit.base,
        diff=diff,
    )
