"""Describe how known programs are run as a model, and read their output. Pure.

Rules of this file
- The flags switch off the program's tools, sessions, hooks, memory and servers. A program that does
  not know one of them fails with its own message; it is never run without them.
- No text of a conversation is an argument, which other users could see; it is standard input.
- A program gets only common environment variables and those that it signs in with.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct, field

from memd.base.settings import ModelSettings
from memd.model.errors import ModelReplyError
from memd.model.port import Usage
from memd.model.wire import count, decode, tame
from memd.store import secret

SETTINGS = "settings.json"  # beside the working directory of a program that reads one
_SYSTEM = "You do what the request says and answer with nothing but the JSON that it wants."
# Environment variables that every program gets.
_VARIABLES = (
    *("HOME", "LANG", "LANGUAGE", "LOGNAME", "NODE_EXTRA_CA_CERTS", "PATH", "SHELL"),
    *("SSL_CERT_DIR", "SSL_CERT_FILE", "TERM", "TMPDIR", "TZ", "USER"),
)
_PROXIES = ("http_proxy", "https_proxy", "no_proxy", "all_proxy")
_OFF_IN_CODEX = ("hooks", "memories", "shell_tool", "unified_exec", "apps", "plugins")
_NOT_JSON = "it is not the JSON that this program prints"
_WITHOUT_TEXT = "it holds no answer"
_MESSAGE_CHARACTERS = 4_096  # of a failed program, from the end of its output
_FAILED = "the program says that it failed"

Answer = tuple[str, Usage]


class Program(Struct, frozen=True):
    """A program that is run as a model; ``name`` is its name in the records of spending.

    ``answer`` returns the text and the usage in its standard output, or raises ModelReplyError.
    It gets the environment's variables whose names begin with one of ``signs_in_with``, and
    ``variables``. ``settings`` is the content of its settings file, whose path is put in
    ``settings_variable``.
    """

    name: str
    argv: tuple[str, ...]
    answer: Callable[[str], Answer]
    model_flag: str = ""
    signs_in_with: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    settings: str = ""
    settings_variable: str = ""

    def command(self, path: str, model: str) -> list[str]:
        """Return the command line, with the program's path and the model's name."""
        command = [path, *self.argv[1:]]
        if self.model_flag and model != self.name:  # a model with the program's name is its default
            command += [self.model_flag, model]
        return command

    def environment(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of the program, chosen from the daemon's ``environ``."""
        inherited = {name: value for name, value in environ.items() if self._gets(name)}
        return inherited | dict(self.variables)

    def _gets(self, name: str) -> bool:
        """Return whether the program gets the daemon's environment variable ``name``."""
        return (
            name in _VARIABLES
            or name.lower() in _PROXIES
            or name.startswith(("LC_", "XDG_", *self.signs_in_with))
        )


def program(settings: ModelSettings) -> Program | str:
    """Return the program that the settings name, or the reason if there is none."""
    if settings.argv:
        name = settings.argv[0].rsplit("/", 1)[-1]
        return Program(f"command:{name}", settings.argv, _plain_output)
    if settings.preset:
        return PRESETS[settings.preset]
    return "model.provider is command and neither model.preset nor model.argv names one"


def complaint(output: str, errors: str) -> str:
    """Return a failed program's message on one line, shortened and without credentials.

    It is the ``result`` in its JSON output, else its error output, else its whole output.
    """
    try:
        result = _object(output).get("result")
    except ModelReplyError:
        result = None
    words = result if isinstance(result, str) else errors.strip() or output
    return tame(secret.scrub(words[-_MESSAGE_CHARACTERS:].strip()), ())


def _plain_output(output: str) -> Answer:
    """Return the whole output as the text. Raises ModelReplyError if it is empty."""
    if not output.strip():
        raise ModelReplyError(_WITHOUT_TEXT)
    return output, Usage()


def _claude_code(output: str) -> Answer:
    """Return the text and usage in Claude Code's JSON output. Raises ModelReplyError."""
    result = _object(output)
    if result.get("is_error"):
        raise ModelReplyError(complaint(output, _FAILED))
    used = _mapping(result.get("usage"))
    return _text(result.get("result")), Usage(
        input=count(used.get("input_tokens")),
        output=count(used.get("output_tokens")),
        cache_read=count(used.get("cache_read_input_tokens")),
        cache_created=count(used.get("cache_creation_input_tokens")),
    )


def _codex(output: str) -> Answer:
    """Return the text and usage in the JSON events that Codex prints. Raises ModelReplyError."""
    text, usage = "", Usage()
    for event in _events(output):
        item, used = _mapping(event.get("item")), _mapping(event.get("usage"))
        if event.get("type") == "item.completed" and item.get("type") == "agent_message":
            text = _text(item.get("text"))  # the last message is the answer
        elif event.get("type") == "turn.failed":
            words = str(_mapping(event.get("error")).get("message", _FAILED))
            raise ModelReplyError(tame(secret.scrub(words), ()))
        elif event.get("type") == "turn.completed":
            cached = count(used.get("cached_input_tokens"))
            read = max(count(used.get("input_tokens")) - cached, 0)
            usage = Usage(read, count(used.get("output_tokens")), cached)
    return _text(text), usage


def _gemini(output: str) -> Answer:
    """Return the text and usage in Gemini's JSON output. Raises ModelReplyError."""
    result = _object(output)
    used = Usage()  # the sum over all models that took part
    for model in _mapping(_mapping(result.get("stats")).get("models")).values():
        tokens = _mapping(_mapping(model).get("tokens"))
        used += Usage(
            count(tokens.get("input")),
            count(tokens.get("candidates")) + count(tokens.get("thoughts")),
            count(tokens.get("cached")),
        )
    return _text(result.get("response")), used


def _events(output: str) -> Iterator[Mapping[str, Any]]:
    """Yield the JSON objects among the lines of an output."""
    for line in output.splitlines():
        try:
            event = decode(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(event, dict):
            yield event


def _object(output: str) -> Mapping[str, Any]:
    """Return the JSON object in an output. Raises ModelReplyError."""
    start = output.find("{")  # a warning may be printed before it
    try:
        result = decode(output[start:]) if start >= 0 else None
    except (ValueError, RecursionError):
        result = None
    if not isinstance(result, dict):
        raise ModelReplyError(_NOT_JSON)
    return result


def _mapping(value: object) -> Mapping[str, Any]:
    """Return a value if it is a JSON object, otherwise an empty one."""
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    """Return a value if it is a text that is not blank. Raises ModelReplyError."""
    if not isinstance(value, str) or not value.strip():
        raise ModelReplyError(_WITHOUT_TEXT)
    return value


# Each flag was seen to work with the version named.
PRESETS: Mapping[str, Program] = {
    "claude-code": Program(  # 2.1.329; its safe mode leaves the sign-in as it is, --bare does not
        "claude-code",
        (
            *("claude", "-p", "--output-format", "json", "--safe-mode", "--tools", ""),
            *("--strict-mcp-config", "--disable-slash-commands", "--no-session-persistence"),
            *("--system-prompt", _SYSTEM),
        ),
        _claude_code,
        "--model",
        ("ANTHROPIC_", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_", "AWS_"),
        {
            "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
            "CLAUDE_CODE_DISABLE_CLAUDE_MDS": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_SKIP_PROMPT_HISTORY": "1",
            "DISABLE_AUTOUPDATER": "1",
        },
    ),
    "codex": Program(  # 0.169.0
        "codex",
        (
            *("codex", "exec", "--json", "--ephemeral", "--skip-git-repo-check"),
            *("--ignore-user-config", "--ignore-rules", "--sandbox", "read-only"),
            *(part for feature in _OFF_IN_CODEX for part in ("--disable", feature)),
            *("-c", "project_doc_max_bytes=0", "-c", 'web_search="disabled"', "-"),
        ),
        _codex,
        "--model",
        ("CODEX_", "OPENAI_"),
    ),
    "gemini": Program(  # 0.61.0; what no flag switches off, a file of settings does
        "gemini",
        (
            *("gemini", "--prompt", "", "--output-format", "json", "--skip-trust"),
            *("--extensions", "none", "--allowed-mcp-server-names", "none"),
        ),
        _gemini,
        "--model",
        ("GEMINI_API_KEY", "GOOGLE_"),
        settings=json.dumps(
            {
                "hooksConfig": {"enabled": False},
                "tools": {"core": ["none"]},
                "skills": {"enabled": False},
                "general": {"enableAutoUpdate": False},
            }
        ),
        settings_variable="GEMINI_CLI_SYSTEM_SETTINGS_PATH",
    ),
}
