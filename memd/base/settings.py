"""All settings with their defaults, bounds and documentation; parsing them never fails.

``parse`` takes layers of parsed TOML, the weakest first, and returns settings and problems. A bad
option is a problem, and the weaker layer's value stays. ``docs/settings.md`` is generated from the
declarations below.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memd.base import prices
from memd.base.agents import AgentScope
from memd.base.events import LOG_LEVELS
from memd.base.options import Layer, OneOf, applied, names, numbers, option, options_of, texts

# The kinds of work that a model does: choose memories for prompts, learn from conversations,
# consolidate, keep session notes, summarise conversations, say what a sub-agent is doing.
KINDS = ("recall", "extract", "dream", "notes", "compact", "progress")
INBOUND = ("accept", "hold", "refuse")  # the strictest last


@dataclass(frozen=True, slots=True)
class ClaudeCodeSettings:
    """``[claude_code]``: what holds where you switched Claude Code's own memory off."""

    bring_memory: bool = option(default=False, doc="bring memd's memory there all the same")


@dataclass(frozen=True, slots=True)
class RecallSettings:
    """``[recall]``: what prefetch brings to a prompt."""

    enabled: bool = option(default=True, doc="bring memories to prompts")
    limit: int = option(5, "memories per prompt at most", 1, 20)


@dataclass(frozen=True, slots=True)
class ExtractSettings:
    """``[extract]``: learning from conversations."""

    enabled: bool = option(default=True, doc="write memories from conversations")
    every_turns: int = option(1, "look at every N-th complete turn", 1, 1000)
    allow_remote: bool = option(
        default=False, doc="also for remote or non-interactive clients, such as claude -p"
    )
    notify: bool = option(
        default=True, doc="tell in one line of the client what was saved, where it has a way"
    )
    use_model: bool = option(default=True, doc="let a model learn where one is configured")
    skip_outside: bool = option(
        default=False, doc="leave out conversations with words from the web or from MCP servers"
    )
    suggest: bool = option(
        default=True, doc="show what was said and may be worth remembering until it is decided"
    )


@dataclass(frozen=True, slots=True)
class DreamSettings:
    """``[dream]``: consolidation."""

    enabled: bool = option(default=True, doc="allow dreams at all")
    auto: bool = option(default=True, doc="dream without being asked when the gates open")
    min_hours: float = option(24.0, "hours between automatic dreams", 0, 10_000)
    min_sessions: int = option(
        5, "sessions whose transcripts changed since the last dream", 0, 10_000
    )
    use_model: bool = option(default=True, doc="let a model dream where one is configured")


@dataclass(frozen=True, slots=True)
class NotesSettings:
    """``[notes]``: what one conversation is about, written down while it runs."""

    enabled: bool = option(default=True, doc="keep notes of conversations")
    use_model: bool = option(default=True, doc="let a model write them where one is configured")
    precompact: bool = option(
        default=False, doc="name the notes' file to a client that is about to compact"
    )


@dataclass(frozen=True, slots=True)
class ContextSettings:
    """``[context]``: conversations that agent programs have memd keep small."""

    spill: bool = option(default=True, doc="store large results of tools and send their beginning")
    clear: bool = option(
        default=False, doc="clear old results of tools once a conversation has rested for an hour"
    )
    compact: bool = option(default=True, doc="say when a conversation has to be summarised")
    hook_spill: bool = option(
        default=False,
        doc="store large results of Claude Code's searches, web pages and MCP servers too; run "
        "memctl setup claude-code afterwards",
    )
    limits: Mapping[str, int] = numbers(
        "characters of a result that are sent whole, by the tool's name, as in Bash = 10000", 0
    )


@dataclass(frozen=True, slots=True)
class PromptSettings:
    """``[prompt]``: the memory section of a system prompt."""

    display_name: str = option("Memory", "the heading that the section gets")
    extra_guidelines: str = option("", "text appended to the guidelines")
    search_past_context: bool = option(default=True, doc="tell how to search past context")
    daily_log: bool = option(default=False, doc="write daily logs instead of topic files")


@dataclass(frozen=True, slots=True)
class TeamSettings:
    """``[team]``: memories shared with a team."""

    enabled: str = option(
        "auto",
        "use the directory team beside the private memories: auto, where memctl team join was "
        "run; true, everywhere, without a server where none was joined; false, nowhere, and no "
        "project is kept equal",
        problem=OneOf("auto", "true", "false"),
        booleans=True,
    )

    def used(self, *, joined: bool) -> bool:
        """Say whether team memories are used in a project that joined a team, or did not."""
        return self.enabled == "true" or (self.enabled == "auto" and joined)


_INBOUND = OneOf(*INBOUND)


@dataclass(frozen=True, slots=True)
class MessagesSettings:
    """``[messages]``: messages between agents.

    What comes in is accepted, held until memctl message accept or refuse, or refused. The file
    .memd.toml of a project may make these stricter for itself and nothing else.
    """

    enabled: bool = option(default=True, doc="serve the methods of agents and messages")
    inbound: str = option("accept", "messages of agents of the same project", problem=_INBOUND)
    inbound_across: str = option("hold", "messages of agents of other projects", problem=_INBOUND)
    inbound_unregistered: str = option(
        "hold", "messages of who is not registered, as memctl is", problem=_INBOUND
    )


@dataclass(frozen=True, slots=True)
class AgentsSettings:
    """``[agents]``: memories of sub-agents."""

    memory: Mapping[str, str] = names(
        "sub-agents that get a memory where their client gives them none, by name, as in "
        'reviewer = "project"; the scopes are user, project and local. Run memctl setup '
        "claude-code afterwards",
        *AgentScope,
    )


@dataclass(frozen=True, slots=True)
class JournalSettings:
    """``[journal]``: how much history is kept."""

    mebibytes: int = option(256, "MiB of history kept", 1, 1_000_000)


@dataclass(frozen=True, slots=True)
class LogSettings:
    """``[log]``: the daemon's log."""

    level: str = option(
        "info",
        "debug, info, warning or error; read when the daemon starts",
        problem=OneOf(*LOG_LEVELS),
    )


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """``[model]``: whom memd asks, and what it calls itself there.

    Where none of ``base_url``, ``api_key``, ``auth_token`` and ``api_key_file`` is set, all of
    them come from the file env or the daemon's environment: no key of one place goes to an address
    of another.
    """

    enabled: bool = option(default=True, doc="use a language model where one is configured")
    provider: str = option(
        "messages",
        "who answers: messages (a server of the Messages API), openai (one with the OpenAI chat "
        "form, as llama.cpp, LM Studio, vLLM and OpenRouter have it) or command (a program that "
        "you have, see preset and argv)",
        problem=OneOf("messages", "openai", "command"),
    )
    preset: str = option(
        "",
        "the program of provider = command: claude-code, codex or gemini. It works on your own "
        "plan with it",
        problem=OneOf("", "claude-code", "codex", "gemini"),
    )
    argv: tuple[str, ...] = option(
        (),
        "a program of your own for provider = command, as a list: it reads the request from its "
        "standard input and prints the answer",
    )
    base_url: str = option(
        "",
        "address of a Messages API, or of the server of provider = openai, with or without /v1; "
        "plain http only to this machine. Default: "
        "https://api.anthropic.com where a key is set. Where none of the address, the keys and "
        "the key's file is set, ANTHROPIC_BASE_URL, ANTHROPIC_API_KEY and ANTHROPIC_AUTH_TOKEN "
        "of the file env or the daemon's environment count",
    )
    api_key: str = option(
        "", "key for it; ignored while others may read the file (chmod 600)", secret=True
    )
    auth_token: str = option(
        "", "bearer token, where the server wants one instead of a key", secret=True
    )
    api_key_file: str = option("", "file that holds the key alone and that others may not read")
    name: str = option(
        "",
        "the model; default: ANTHROPIC_MODEL of the file env or the daemon's environment, else "
        "claude-sonnet-5-5",
    )
    by_kind: Mapping[str, str] = texts(
        'models for single kinds of work, as in { dream = "claude-opus-5" }; default: '
        "model.name, and for progress the cheapest of those named",
        *KINDS,
    )


@dataclass(frozen=True, slots=True)
class SpendSettings:
    """``[spend]``: what models may cost for all kinds of work; a day is the user's local one."""

    dollars_per_day: float = option(1.0, "US dollars a day at most", 0, 10_000)
    requests_per_day: int = option(1000, "requests a day at most", 0, 1_000_000)
    runs_per_day: int = option(
        30,
        "runs a day of the program of provider = command; the day's other requests for learning "
        "and dreams count too",
        0,
        100_000,
    )
    prices: str = option(
        "",
        "lines of a model's name and its US dollars per million tokens of input, output, cache "
        "read and cache write; they come before memd's own table. A model that is in neither "
        "counts as the dearest",
        problem=prices.problem,
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """All options. Paths count only in the system policy and the user's own file."""

    enabled: bool = option(default=True, doc="memory as a whole")
    base_dir: str = option("", "where projects/ lies; default ~/.claude")
    auto_memory_directory: str = option("", "one memory directory for everything")
    allow_home: bool = option(
        default=True, doc="the home directory itself, and what lies above it, have a memory"
    )
    claude_code: ClaudeCodeSettings = field(default_factory=ClaudeCodeSettings)
    recall: RecallSettings = field(default_factory=RecallSettings)
    extract: ExtractSettings = field(default_factory=ExtractSettings)
    dream: DreamSettings = field(default_factory=DreamSettings)
    notes: NotesSettings = field(default_factory=NotesSettings)
    context: ContextSettings = field(default_factory=ContextSettings)
    prompt: PromptSettings = field(default_factory=PromptSettings)
    team: TeamSettings = field(default_factory=TeamSettings)
    messages: MessagesSettings = field(default_factory=MessagesSettings)
    agents: AgentsSettings = field(default_factory=AgentsSettings)
    journal: JournalSettings = field(default_factory=JournalSettings)
    log: LogSettings = field(default_factory=LogSettings)
    model: ModelSettings = field(default_factory=ModelSettings)
    spend: SpendSettings = field(default_factory=SpendSettings)


def parse(layers: Sequence[Layer]) -> tuple[Settings, tuple[str, ...]]:
    """Return the settings of all layers, of which later ones override, and a sentence a problem."""
    settings = Settings()
    problems: list[str] = []
    for layer in layers:
        settings = applied(settings, layer.options, layer.source, "", problems)
    return settings, tuple(problems)


def declared() -> Iterator[tuple[str, Any, str]]:
    """Yield each option's dotted name, default and documentation, in the order of declaration."""
    return options_of(Settings)
