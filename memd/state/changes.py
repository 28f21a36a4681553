"""The door to the journal: change sets, their history, proposals, and what is kept of them."""

from memd.state.baseline import Baseline, BaselineChange, FileState
from memd.state.blobs import packed
from memd.state.formats import COPIED, check_version, forget_copies
from memd.state.history import CombinedChange, Filter, JournalHistory, compose, select_past
from memd.state.journal import Journal
from memd.state.migration import migrate
from memd.state.proposals import Proposal, ProposalTable, RefusedEdits, fits
from memd.state.proposed import ACCEPTED, OPEN, REJECTED, UNUSED, ProposedEdit, state_of
from memd.state.purge import LiveFile, Purge, PurgedText
from memd.state.records import (
    ABANDONED,
    CONFLICT,
    FAILED,
    ChangeRecord,
    PlannedChange,
    Step,
    file_changes,
)
from memd.state.retention import Pruned, Retention

__all__ = [
    "ABANDONED",
    "ACCEPTED",
    "CONFLICT",
    "COPIED",
    "FAILED",
    "OPEN",
    "REJECTED",
    "UNUSED",
    "Baseline",
    "BaselineChange",
    "ChangeRecord",
    "CombinedChange",
    "FileState",
    "Filter",
    "Journal",
    "JournalHistory",
    "LiveFile",
    "PlannedChange",
    "Proposal",
    "ProposalTable",
    "ProposedEdit",
    "Pruned",
    "Purge",
    "PurgedText",
    "RefusedEdits",
    "Retention",
    "Step",
    "check_version",
    "compose",
    "file_changes",
    "fits",
    "forget_copies",
    "migrate",
    "packed",
    "select_past",
    "state_of",
]
