"""The reader by consent: setup's one question, whether a program reads sessions, and its answer.

Rules of this file
- The question is asked on a terminal, once: its answer is in the user's settings file, and there is
  none where these name a model or answer already. No answer is a no.
- A yes makes a program that the person has the model, which reads a session when it ends; a later
  no switches that model off.
- A model that the person named in another way is left as it is.
"""

import json
import shutil
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from memd.base import settings_file
from memd.base.errors import Invalid, MemdError, Refused
from memd.cli import service_unit
from memd.cli.asking import can_ask, person_agrees
from memd.cli.commands import service
from memd.cli.invocation import Invocation
from memd.cli.setup import files, toml
from memd.model.endpoint import environment
from memd.model.key_file import read_variables

# The program that a preset of the setting model.preset runs.
_PROGRAMS = {"claude-code": "claude", "codex": "codex", "gemini": "gemini"}
_WHAT_IS_SENT = (
    "What was said in a session, and memories that it is about, would then go through {program} to "
    "its provider, on your plan, when the session ends and once an hour at most in a long one; for "
    "dreams, memories. {runs} runs a day at most."
)
_QUESTION = "May memd read a session once, when it ends, with your plan?"
# Options of [model] that name another model than a preset does.
_OTHERS = frozenset({"base_url", "api_key", "auth_token", "api_key_file", "argv"})
_OTHER_MODEL = "you named another model, which is left as it is"
_OTHER_HINT = "extract.at_end = true in memd.toml has it read a session once, when it ends"
_NO_PROGRAM = "neither claude nor codex nor gemini was found on PATH"


def ask(invocation: Invocation, *, changed: bool) -> None:
    """Ask the question if it was never answered; without a terminal name the option, if wanted."""
    given, problem = settings_file.read(invocation.places.config)
    preset, extract = _preset(invocation), given.get("extract")
    is_answered = "model" in given or (isinstance(extract, dict) and "at_end" in extract)
    if not preset or is_answered or problem or _names_server(invocation):
        return
    if invocation.options.yes or not can_ask(invocation):
        if changed:
            program = _PROGRAMS[preset]
            invocation.screen.note(
                f"memctl setup --reader yes lets {program} read a session once, when it ends, on "
                "your own plan, and memd learn from it (docs/models.md)"
            )
        return
    invocation.screen.note(_what_is_sent(invocation, preset))
    _store(invocation, preset, agrees=person_agrees(invocation, _QUESTION))


def answer(invocation: Invocation) -> None:
    """Store the answer that the option ``--reader`` gives. Raises Invalid and Refused."""
    preset, agrees = _preset(invocation), invocation.options.reader == "yes"
    model = _model(invocation)
    provider = model.get("provider", "command")
    if provider != "command" or not _OTHERS.isdisjoint(model) or _names_server(invocation):
        raise Invalid(_OTHER_MODEL, hint=_OTHER_HINT)
    if agrees and not preset:
        raise Refused(_NO_PROGRAM, hint="docs/models.md says how to name another program")
    if agrees:
        invocation.screen.note(_what_is_sent(invocation, preset))
    _store(invocation, preset, agrees=agrees)


def _store(invocation: Invocation, preset: str, *, agrees: bool) -> None:
    """Write an answer into the user's settings file and say what holds now. Raises Refused."""
    path, screen = invocation.places.config, invocation.screen
    model = _model(invocation)
    options: dict[str, dict[str, Any]] = {"extract": {"at_end": False}}
    if agrees:
        enabled = {"enabled": True} if "enabled" in model else {}
        named = {**enabled, "provider": "command", "preset": preset}
        options = {"model": named, "extract": {"at_end": True}}
        words = f"{_PROGRAMS[preset]} reads a session once, when it ends: {path}"
    elif model.get("provider") == "command":
        options = {"model": {"enabled": False}}
        words = f"no program reads your sessions: model.enabled = false in {path}"
    else:
        words = f"no program reads your sessions; memctl setup --reader yes changes that: {path}"
    if invocation.options.dry_run or invocation.options.diff:
        screen.note(f"would set in {path}: {_in_words(options)}")
        return
    _write(path, options)
    screen.note(words)
    with suppress(MemdError):
        if agrees and "outdated" in service_unit.states(service.find(invocation)).values():
            screen.note("a program needs more room than memd: memctl service install")


def _write(path: str, options: Mapping[str, dict[str, Any]]) -> None:
    """Set options of the user's settings file, whose other bytes stay. Raises Refused and Busy."""
    base = files.read(path)
    try:
        text = (base or b"").decode()
        for table, values in options.items():
            for key, value in values.items():
                text = toml.insert(text, (table, key), value)
    except ValueError as error:
        raise Refused(
            f"{path} is left as it is: {error}",
            exit_status=78,
            hint=f"mend it, or write into it by hand: {_in_words(options)}",
            path=path,
        ) from error
    files.check_may_be_written(path)
    if text.encode() != base:
        files.write(path, text.encode(), base)


def _in_words(options: Mapping[str, dict[str, Any]]) -> str:
    """Return options as a person writes them into the settings file."""
    return " ".join(
        " ".join([f"[{table}]", *(f"{key} = {json.dumps(value)}" for key, value in values.items())])
        for table, values in options.items()
    )


def _preset(invocation: Invocation) -> str:
    """Return the preset of a program that is here, the client's own first, "" without one."""
    path, client = invocation.environ.get("PATH", ""), invocation.options.client
    there = [preset for preset, name in _PROGRAMS.items() if shutil.which(name, path=path)]
    return client if client in there else next(iter(there), "")


def _model(invocation: Invocation) -> Mapping[str, Any]:
    """Return the table ``[model]`` of the user's settings."""
    return service_unit.settings_table(invocation.places.config, "model") or {}


def _names_server(invocation: Invocation) -> bool:
    """Return whether variables of memd's env file name a server or a key."""
    with suppress(MemdError):
        return environment({}, read_variables(invocation.places.env_file))[1]
    return True  # the file cannot be read, so nobody knows


def _what_is_sent(invocation: Invocation, preset: str) -> str:
    """Return what a program would get, for a person who decides."""
    loaded, _ = settings_file.load(invocation.places.config)
    runs = loaded.spend.runs_per_day
    return _WHAT_IS_SENT.format(program=_PROGRAMS[preset], runs=runs)
