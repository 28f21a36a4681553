"""All settings with their defaults, bounds and documentation; parsing them never fails.

``parse`` takes layers of parsed TOML, the weakest first, and returns settings and problems. A bad
option is a problem, and the weaker layer's value stays. ``docs/settings.md`` is generated from the
declarations below.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

from msgspec import Struct

from memd.base.agents import AgentScope
from memd.base.limits import LOG_LEVELS
from memd.base.options import Layer, OneOf, Setting, applied, names, numbers, options_of, texts
from memd.base.prices import problem as price_problem

# The kinds of work that a model does: choose memories for prompts, learn from conversations,
# consolidate, keep session notes, summarise conversations, say what a sub-agent is doing.
KINDS = ("recall", "extract", "dream", "notes", "compact", "progress")
INBOUND = ("accept", "hold", "refuse")  # the strictest last


class ClaudeCodeSettings(Struct, frozen=True):
    """``[claude_code]``: what holds where you switched Claude Code's own memory off."""

    bring_memory: Annotated[bool, Setting("bring memd's memory there all the same")] = False


class RecallSettings(Struct, frozen=True):
    """``[recall]``: what prefetch brings to a prompt."""

    enabled: Annotated[bool, Setting("bring memories to prompts")] = True
    limit: Annotated[int, Setting("memories per prompt at most", 1, 20)] = 5


class ExtractSettings(Struct, frozen=True):
    """``[extract]``: learning from conversations."""

    enabled: Annotated[bool, Setting("write memories from conversations")] = True
    every_turns: Annotated[int, Setting("look at every N-th complete turn", 1, 1000)] = 1
    at_end: Annotated[
        bool,
        Setting(
            "let a model read a session once, when it ends, and once an hour at most while it goes "
            "on, not after each turn"
        ),
    ] = False
    allow_remote: Annotated[
        bool, Setting("also for remote or non-interactive clients, such as claude -p")
    ] = False
    notify: Annotated[
        bool, Setting("tell in one line of the client what was saved, where it has a way")
    ] = True
    use_model: Annotated[bool, Setting("let a model learn where one is configured")] = True
    skip_outside: Annotated[
        bool, Setting("leave out conversations with words from the web or from MCP servers")
    ] = False
    suggest: Annotated[
        bool, Setting("show what was said and may be worth remembering until it is decided")
    ] = True


class DreamSettings(Struct, frozen=True):
    """``[dream]``: consolidation."""

    enabled: Annotated[bool, Setting("allow dreams at all")] = True
    auto: Annotated[bool, Setting("dream without being asked when the gates open")] = True
    min_hours: Annotated[float, Setting("hours between automatic dreams", 0, 10_000)] = 24.0
    min_sessions: Annotated[
        int, Setting("sessions whose transcripts changed since the last dream", 0, 10_000)
    ] = 5
    use_model: Annotated[bool, Setting("let a model dream where one is configured")] = True


class NotesSettings(Struct, frozen=True):
    """``[notes]``: what one conversation is about, written down while it runs."""

    enabled: Annotated[bool, Setting("keep notes of conversations")] = True
    use_model: Annotated[bool, Setting("let a model write them where one is configured")] = True
    precompact: Annotated[
        bool, Setting("name the notes' file to a client that is about to compact")
    ] = False


class ContextSettings(Struct, frozen=True):
    """``[context]``: conversations that agent programs have memd keep small."""

    spill: Annotated[bool, Setting("store large results of tools and send their beginning")] = True
    clear: Annotated[
        bool, Setting("clear old results of tools once a conversation has rested for an hour")
    ] = False
    compact: Annotated[bool, Setting("say when a conversation has to be summarised")] = True
    hook_spill: Annotated[
        bool,
        Setting(
            "store large results of Claude Code's searches, web pages and MCP servers too; run "
            "memctl setup claude-code afterwards"
        ),
    ] = False
    limits: Annotated[
        Mapping[str, int],
        numbers(
            "characters of a result that are sent whole, by the tool's name, as in Bash = 10000", 0
        ),
    ] = {}


class PromptSettings(Struct, frozen=True):
    """``[prompt]``: the memory section of a system prompt."""

    display_name: Annotated[str, Setting("the heading that the section gets")] = "Memory"
    extra_guidelines: Annotated[str, Setting("text appended to the guidelines")] = ""
    search_past_context: Annotated[bool, Setting("tell how to search past context")] = True
    daily_log: Annotated[bool, Setting("write daily logs instead of topic files")] = False


class TeamSettings(Struct, frozen=True):
    """``[team]``: memories shared with a team."""

    enabled: Annotated[
        str,
        Setting(
            "use the directory team beside the private memories: auto, where memctl team join was "
            "run; true, everywhere, without a server where none was joined; false, nowhere, and no "
            "project is kept equal",
            problem=OneOf("auto", "true", "false"),
            booleans=True,
        ),
    ] = "auto"

    def used(self, *, joined: bool) -> bool:
        """Say whether team memories are used in a project that joined a team, or did not."""
        return self.enabled == "true" or (self.enabled == "auto" and joined)


_INBOUND = OneOf(*INBOUND)


class MessagesSettings(Struct, frozen=True):
    """``[messages]``: messages between agents.

    What comes in is accepted, held until the person decides (memctl review), or refused. The file
    .memd.toml of a project may make these stricter for itself and nothing else.
    """

    enabled: Annotated[bool, Setting("serve the methods of agents and messages")] = True
    inbound: Annotated[str, Setting("messages of agents of the same project", problem=_INBOUND)] = (
        "accept"
    )
    inbound_across: Annotated[
        str, Setting("messages of agents of other projects", problem=_INBOUND)
    ] = "hold"
    inbound_unregistered: Annotated[
        str, Setting("messages of who is not registered, as memctl is", problem=_INBOUND)
    ] = "hold"


class AgentsSettings(Struct, frozen=True):
    """``[agents]``: memories of sub-agents."""

    memory: Annotated[
        Mapping[str, str],
        names(
            "sub-agents that get a memory where their client gives them none, by name, as in "
            'reviewer = "project"; the scopes are user, project and local. Run memctl setup '
            "claude-code afterwards",
            *AgentScope,
        ),
    ] = {}


class JournalSettings(Struct, frozen=True):
    """``[journal]``: how much history is kept."""

    mebibytes: Annotated[int, Setting("MiB of history kept", 1, 1_000_000)] = 256


class LogSettings(Struct, frozen=True):
    """``[log]``: the daemon's log."""

    level: Annotated[
        str,
        Setting(
            "debug, info, warning or error; read when the daemon starts", problem=OneOf(*LOG_LEVELS)
        ),
    ] = "info"


class ModelSettings(Struct, frozen=True):
    """``[model]``: whom memd asks, and what it calls itself there.

    Where none of ``base_url``, ``api_key``, ``auth_token`` and ``api_key_file`` is set, all of
    them come from the file env or the daemon's environment: no key of one place goes to an address
    of another.
    """

    enabled: Annotated[bool, Setting("use a language model where one is configured")] = True
    provider: Annotated[
        str,
        Setting(
            "who answers: messages (a server of the Messages API), openai (one with the OpenAI "
            "chat form, as llama.cpp, LM Studio, vLLM and OpenRouter have it) or command (a "
            "program that you have, see preset and argv)",
            problem=OneOf("messages", "openai", "command"),
        ),
    ] = "messages"
    preset: Annotated[
        str,
        Setting(
            "the program of provider = command: claude-code, codex or gemini. It works on your own "
            "plan with it",
            problem=OneOf("", "claude-code", "codex", "gemini"),
        ),
    ] = ""
    argv: Annotated[
        tuple[str, ...],
        Setting(
            "a program of your own for provider = command, as a list: it reads the request from "
            "its standard input and prints the answer"
        ),
    ] = ()
    base_url: Annotated[
        str,
        Setting(
            "address of a Messages API, or of the server of provider = openai, with or without "
            "/v1; plain http only to this machine. Default: "
            "https://api.anthropic.com where a key is set. Where none of the address, the keys and "
            "the key's file is set, ANTHROPIC_BASE_URL, ANTHROPIC_API_KEY and ANTHROPIC_AUTH_TOKEN "
            "of the file env or the daemon's environment count"
        ),
    ] = ""
    api_key: Annotated[
        str, Setting("key for it; ignored while others may read the file (chmod 600)")
    ] = ""
    auth_token: Annotated[
        str, Setting("bearer token, where the server wants one instead of a key")
    ] = ""
    api_key_file: Annotated[
        str, Setting("file that holds the key alone and that others may not read")
    ] = ""
    name: Annotated[
        str,
        Setting(
            "the model; default: ANTHROPIC_MODEL of the file env or the daemon's environment, else "
            "claude-sonnet-5-5"
        ),
    ] = ""
    by_kind: Annotated[
        Mapping[str, str],
        texts(
            'models for single kinds of work, as in { dream = "claude-opus-5" }; default: '
            "model.name, and for progress the cheapest of those named",
            *KINDS,
        ),
    ] = {}

    def __repr__(self) -> str:
        """Return whom memd asks, without the keys."""
        return f"ModelSettings(provider={self.provider!r}, base_url={self.base_url!r})"


class SpendSettings(Struct, frozen=True):
    """``[spend]``: what models may cost for all kinds of work; a day is the user's local one."""

    dollars_per_day: Annotated[float, Setting("US dollars a day at most", 0, 10_000)] = 1.0
    requests_per_day: Annotated[int, Setting("requests a day at most", 0, 1_000_000)] = 1000
    runs_per_day: Annotated[
        int,
        Setting(
            "runs a day of the program of provider = command; the day's other requests for "
            "learning and dreams count too",
            0,
            100_000,
        ),
    ] = 30
    prices: Annotated[
        str,
        Setting(
            "lines of a model's name and its US dollars per million tokens of input, output, cache "
            "read and cache write; they come before memd's own table. A model that is in neither "
            "counts as the dearest",
            problem=price_problem,
        ),
    ] = ""


class Settings(Struct, frozen=True):
    """All options. Paths count only in the system policy and the user's own file."""

    enabled: Annotated[bool, Setting("memory as a whole")] = True
    base_dir: Annotated[str, Setting("where projects/ lies; default ~/.claude")] = ""
    auto_memory_directory: Annotated[str, Setting("one memory directory for everything")] = ""
    allow_home: Annotated[
        bool, Setting("the home directory itself, and what lies above it, have a memory")
    ] = True
    claude_code: ClaudeCodeSettings = ClaudeCodeSettings()
    recall: RecallSettings = RecallSettings()
    extract: ExtractSettings = ExtractSettings()
    dream: DreamSettings = DreamSettings()
    notes: NotesSettings = NotesSettings()
    context: ContextSettings = ContextSettings()
    prompt: PromptSettings = PromptSettings()
    team: TeamSettings = TeamSettings()
    messages: MessagesSettings = MessagesSettings()
    agents: AgentsSettings = AgentsSettings()
    journal: JournalSettings = JournalSettings()
    log: LogSettings = LogSettings()
    model: ModelSettings = ModelSettings()
    spend: SpendSettings = SpendSettings()


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
