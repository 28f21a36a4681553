"""The door to the journal: change sets, their history, proposals, and what is kept of them."""

from memd.state.baseline import Baseline, BaselineChange, FileState
from memd.state.history import Filter, History, Span, compose
from memd.state.journal import ABANDONED, FAILED, INDEX, Intent, Journal, Record, Step, file_changes
from memd.state.migration import migrate
from memd.state.packing import packed
from memd.state.proposals import Proposal, Proposals, RefusedEdits
from memd.state.proposed import ACCEPTED, OPEN, REJECTED, ProposedEdit, state_of
from memd.state.purge import Body, LiveFile, Purge
from memd.state.records import CONFLICT
from memd.state.retention import Pruned, Retention

__all__ = [
    "ABANDONED",
    "ACCEPTED",
    "CONFLICT",
    "FAILED",
    "INDEX",
    "OPEN",
    "REJECTED",
    "Baseline",
    "BaselineChange",
    "Body",
    "FileState",
    "Filter",
    "History",
    "Intent",
    "Journal",
    "LiveFile",
    "Proposal",
    "Proposals",
    "ProposedEdit",
    "Pruned",
    "Purge",
    "Record",
    "RefusedEdits",
    "Retention",
    "Span",
    "Step",
    "compose",
    "file_changes",
    "migrate",
    "packed",
    "state_of",
]
