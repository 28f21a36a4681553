"""Methods, commands and settings of the version before that are gone, with what holds instead.

A call, command line or settings file that still names one is answered with the sentence beside it.
The tables stand for one release; docs/protocol.md, docs/cli.md and docs/settings.md list the same.
"""

from collections.abc import Mapping

_NO_REPLACEMENT = "nothing takes its place"
GATEWAY = "Keeper of memd.client.context does its work in a program with the SDK"
_DOLLARS = "spend.dollars_per_day holds for all kinds of work together"
_REQUESTS = "spend.requests_per_day holds for all kinds of work together"

METHODS: Mapping[str, str] = {
    "agent.merge": _NO_REPLACEMENT,
    "context.count": "context.plan counts",
    "context.observe": "context.plan takes the usage of the reply before",
    "debug": "status and the log have what it said",
    "instructions.approve": "instructions with allow",
    "instructions.check": "instructions; problems has what it said",
    "instructions.list": "instructions",
    "instructions.read": "instructions; text has it",
    "job.get": "job.list with job",
    "job.retry": "ask extract or dream again",
    "memory.adopt": "save the memory as the person: memory.write, or memctl edit",
    "memory.restore": "memory.undo with path",
    "metrics": "status, report and the log have what it said",
    "project.list": "status lists the projects",
    "recall.probe": _NO_REPLACEMENT,
    "restart": "shutdown; the next client or the service manager starts memd",
    "spend": "report says what models cost",
    "suggestion.edit": "suggestion.accept with text",
    "unsubscribe": "close the connection",
    "usage.list": "report, and memory.why for one memory",
    "usage.recent": "report, and memory.why for one memory",
}

COMMANDS: Mapping[str, str] = {
    "adopt": "memctl edit saves the memory as yours",
    "agent merge": f"{_NO_REPLACEMENT}; memctl help lists what there is",
    "agent show": "memctl agent list --json",
    "conformance": _NO_REPLACEMENT,
    "debug": "memctl status and memctl logs have what it said",
    "discover": "memctl call rpc.discover",
    "instructions approve": "memctl instructions --allow",
    "instructions check": "memctl instructions",
    "instructions deny": "memctl instructions --deny",
    "instructions list": "memctl instructions",
    "instructions show": "memctl instructions --text",
    "job retry": "memctl extract or memctl dream again",
    "message wait": "memctl message read --wait SECONDS",
    "metrics": "memctl status and memctl report have what it said",
    "restore": "memctl undo PATH",
    "session": "memctl call session.start session_id=ID, also session.compacted and session.end",
    "sockname": "memctl config --socket-path",
    "spend": "memctl report",
    "suggestions edit": "memctl suggestions accept --text TEXT",
    "suggestions list": "memctl suggestions",
    "top": "memctl status",
    "usage": "memctl report, and memctl why for one memory",
    "version": "memctl --version",
    "watch": "memctl log -f and memctl logs -f",
}

SETTINGS: Mapping[str, str] = {
    "agents.project_scope": "an agent's project memory lies where Claude Code keeps it",
    "context.days": "stored results are bounded by their size",
    "dream.check_minutes": "all projects are looked at every 30 minutes",
    "dream.free_memory_mb": "dreams wait for no free memory",
    "dream.max_load": "dreams wait for no load",
    "dream.max_minutes": "a dream ends after 20 minutes",
    "dream.max_turns": "a dream ends after 30 turns",
    "dream.on_battery": "dreams that begin by themselves wait on battery",
    "dream.scan_minutes": "transcripts are looked at every 10 minutes",
    "dream.unused": "no memory is asked about because nobody used it",
    "gateway.upstream": GATEWAY,
    "instructions.already_said": "a sentence that stands in a loaded file is not saved",
    "instructions.exclude": "claudeMdExcludes of Claude Code's settings",
    "journal.days": "history is bounded by journal.mebibytes",
    "messages.peers": "messages go to agents of this memd only",
    "messages.per_minute": "an agent sends 60 messages a minute at most",
    "model.compact": "model.by_kind = { compact = … }",
    "model.dream": "model.by_kind = { dream = … }",
    "model.extract": "model.by_kind = { extract = … }",
    "model.notes": "model.by_kind = { notes = … }",
    "model.progress": "model.by_kind = { progress = … }",
    "model.recall": "model.name, or model.by_kind = { recall = … }",
    "notes.days": "notes are bounded by their number",
    "notes.prompt": "session-memory/config/prompt.md in Claude Code's folder",
    "notes.template": "session-memory/config/template.md in Claude Code's folder",
    "recall.model_seconds": "a model may take 4 s to choose",
    "recall.seconds": "a prompt waits 5 s where its client does not say",
    "recall.semantic_model": "memories are ranked by their words",
    "recall.session_bytes": "60,000 bytes of memories a session",
    "spend.compact_requests_per_day": _REQUESTS,
    "spend.compact_share": _DOLLARS,
    "spend.dream_requests_per_day": _REQUESTS,
    "spend.dream_share": _DOLLARS,
    "spend.extract_requests_per_day": _REQUESTS,
    "spend.extract_share": _DOLLARS,
    "spend.notes_requests_per_day": _REQUESTS,
    "spend.notes_share": _DOLLARS,
    "spend.progress_requests_per_day": _REQUESTS,
    "spend.progress_share": _DOLLARS,
    "spend.recall_requests_per_day": _REQUESTS,
    "spend.recall_share": _DOLLARS,
    "spend.tokens_per_day": "spend.dollars_per_day and spend.requests_per_day",
    "team.push": "what is written below team/ is sent at the next sync",
}
