"""The door to the tables of the state file: jobs, ledger, spending and what else has rows."""

from memd.state import (
    agents,
    approvals,
    cursors,
    dreams,
    job_rows,
    journal,
    ledger,
    messages,
    programs,
    results,
    rules,
    runs,
    spend,
    suggestions,
    visits,
)
from memd.state.agents import AgentTable as AgentTable
from memd.state.approvals import Approvals as Approvals
from memd.state.caps import Sum as Sum
from memd.state.cursors import Cursors as Cursors
from memd.state.dreams import DreamTable as DreamTable
from memd.state.dreams import LockRow as LockRow
from memd.state.figures import Figures as Figures
from memd.state.figures import RunningRow as RunningRow
from memd.state.jobs import Job as Job
from memd.state.jobs import JobNotFoundError as JobNotFoundError
from memd.state.jobs import JobState as JobState
from memd.state.jobs import JobTable as JobTable
from memd.state.jobs import NewJob as NewJob
from memd.state.ledger import Item as Item
from memd.state.ledger import Ledger as Ledger
from memd.state.ledger import Parents as Parents
from memd.state.ledger import Sighting as Sighting
from memd.state.ledger import Surfacings as Surfacings
from memd.state.message_rows import MessageCopy as MessageCopy
from memd.state.message_rows import NewMessage as NewMessage
from memd.state.message_rows import Notice as Notice
from memd.state.message_rows import StoredMessage as StoredMessage
from memd.state.messages import MessageTable as MessageTable
from memd.state.pauses import Breaker as Breaker
from memd.state.pauses import Pauses as Pauses
from memd.state.period import OTHER_WORDS as OTHER_WORDS
from memd.state.period import FileEvent as FileEvent
from memd.state.period import Period as Period
from memd.state.period import Span as Span
from memd.state.period import SuggestionFates as SuggestionFates
from memd.state.programs import Programs as Programs
from memd.state.programs import StartedProgram as StartedProgram
from memd.state.results import ResultTable as ResultTable
from memd.state.results import StoredTotals as StoredTotals
from memd.state.roots import Roots as Roots
from memd.state.rules import RuleTable as RuleTable
from memd.state.rules import StoredRule as StoredRule
from memd.state.runs import Runs as Runs
from memd.state.spend import Account as Account
from memd.state.spend import Booking as Booking
from memd.state.spend import SpendRow as SpendRow
from memd.state.spend import SpendTable as SpendTable
from memd.state.spend import next_day as next_day
from memd.state.suggestions import DISMISSED as DISMISSED
from memd.state.suggestions import TAKEN as TAKEN
from memd.state.suggestions import OpenSuggestion as OpenSuggestion
from memd.state.suggestions import SuggestionCounts as SuggestionCounts
from memd.state.suggestions import SuggestionTable as SuggestionTable
from memd.state.suggestions import letters as letters
from memd.state.teams import TeamTable as TeamTable
from memd.state.visits import Visit as Visit
from memd.state.visits import Visits as Visits

SCHEMAS = (
    journal.SCHEMA,
    cursors.SCHEMA,
    job_rows.SCHEMA,
    agents.SCHEMA,
    approvals.SCHEMA,
    dreams.SCHEMA,
    ledger.SCHEMA,
    messages.SCHEMA,
    programs.SCHEMA,
    results.SCHEMA,
    rules.SCHEMA,
    runs.SCHEMA,
    spend.SCHEMA,
    suggestions.SCHEMA,
    visits.SCHEMA,
)
