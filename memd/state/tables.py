"""The door to the tables of the state file: jobs, ledger, spending and what else has rows."""

from memd.state import (
    agents,
    ages,
    approvals,
    contexts,
    cursors,
    dreams,
    job_rows,
    journal,
    ledger,
    messages,
    programs,
    rules,
    runs,
    spend,
    suggestions,
    visits,
)
from memd.state.agents import AgentTable
from memd.state.ages import Ages
from memd.state.approvals import Approvals
from memd.state.caps import KINDS, Sum
from memd.state.contexts import ContextRow, ContextTable, ContextTotals
from memd.state.cursors import Cursors
from memd.state.dreams import DreamTable, LockRow
from memd.state.figures import Figures, RunningRow, StateCounts, StateTables
from memd.state.imported import ImportTable
from memd.state.jobs import Job, JobNotFoundError, JobNotParkedError, JobState, JobTable, NewJob
from memd.state.ledger import RESUMED_DAYS, SIGHTED_DAYS, Item, Ledger, Parents, Sighting
from memd.state.message_rows import (
    MessageCopy,
    NewMessage,
    Notice,
    StoredMessage,
    is_control,
)
from memd.state.messages import MailboxUse, MessageTable
from memd.state.pauses import Breaker, Pauses
from memd.state.period import (
    OTHER_WORDS,
    FileEvent,
    MemoryEvents,
    OftenUsed,
    Period,
    Span,
    SuggestionFates,
    UseCounts,
)
from memd.state.programs import Programs, StartedProgram
from memd.state.roots import Roots
from memd.state.rules import RuleTable, StoredRule
from memd.state.runs import Runs
from memd.state.spend import KEPT_DAYS, Account, Booking, SpendRow, SpendTable, next_day
from memd.state.suggestions import (
    DISMISSED,
    OPEN_DAYS,
    TAKEN,
    OpenSuggestion,
    SuggestionCounts,
    SuggestionTable,
    letters,
)
from memd.state.tally import Tally
from memd.state.teams import TeamTable
from memd.state.usage import DirectoryUse, MemoryUse, SingleUse, UsageTable
from memd.state.uses import UNUSED_DAYS
from memd.state.visits import Visit, Visits

SCHEMAS = (
    journal.SCHEMA,
    cursors.SCHEMA,
    job_rows.SCHEMA,
    ages.SCHEMA,
    agents.SCHEMA,
    approvals.SCHEMA,
    contexts.SCHEMA,
    dreams.SCHEMA,
    ledger.SCHEMA,
    messages.SCHEMA,
    programs.SCHEMA,
    rules.SCHEMA,
    runs.SCHEMA,
    spend.SCHEMA,
    suggestions.SCHEMA,
    visits.SCHEMA,
)

__all__ = [
    "DISMISSED",
    "KEPT_DAYS",
    "KINDS",
    "OPEN_DAYS",
    "OTHER_WORDS",
    "RESUMED_DAYS",
    "SCHEMAS",
    "SIGHTED_DAYS",
    "TAKEN",
    "UNUSED_DAYS",
    "Account",
    "AgentTable",
    "Ages",
    "Approvals",
    "Booking",
    "Breaker",
    "ContextRow",
    "ContextTable",
    "ContextTotals",
    "Cursors",
    "DirectoryUse",
    "DreamTable",
    "Figures",
    "FileEvent",
    "ImportTable",
    "Item",
    "Job",
    "JobNotFoundError",
    "JobNotParkedError",
    "JobState",
    "JobTable",
    "Ledger",
    "LockRow",
    "MailboxUse",
    "MemoryEvents",
    "MemoryUse",
    "MessageCopy",
    "MessageTable",
    "NewJob",
    "NewMessage",
    "Notice",
    "OftenUsed",
    "OpenSuggestion",
    "Parents",
    "Pauses",
    "Period",
    "Programs",
    "Roots",
    "RuleTable",
    "RunningRow",
    "Runs",
    "Sighting",
    "SingleUse",
    "Span",
    "SpendRow",
    "SpendTable",
    "StartedProgram",
    "StateCounts",
    "StateTables",
    "StoredMessage",
    "StoredRule",
    "SuggestionCounts",
    "SuggestionFates",
    "SuggestionTable",
    "Sum",
    "Tally",
    "TeamTable",
    "UsageTable",
    "UseCounts",
    "Visit",
    "Visits",
    "is_control",
    "letters",
    "next_day",
]
