"""setup: connect a client to memd, or take the connection away."""

import difflib
import os
import shutil

from memd.cli import output, service_unit, setup_claude_code
from memd.cli.invocation import Invocation
from memd.client import hook_file
from memd.core.errors import MemdError

_PROGRAMS = {"claude-code": "claude", "codex": "codex", "gemini": "gemini"}
_STYLES = {"installed": "green", "outdated": "yellow", "absent": "dim"}


def claude_code(invocation: Invocation) -> int:
    """Write memd's hooks into Claude Code's settings, show how that would be, or undo it."""
    options = invocation.options
    path = _path(invocation)
    before = setup_claude_code.read(path)
    settings = setup_claude_code.parse(before, path)
    places = invocation.places
    hook = hook_file.hook_path(places)
    if options.status:
        return _status(invocation, path, settings)
    if options.remove:
        wanted, ready = setup_claude_code.remove(settings), not os.path.lexists(hook)
    else:
        wanted = setup_claude_code.install(settings, hook, _measured(invocation))
        ready = hook_file.is_current(places)
    screen = invocation.screen
    result: dict[str, object] = {"settings": path, "changed": wanted != settings or not ready}
    if wanted == settings and ready:
        words = "none of memd's hooks is in" if options.remove else "already set up:"
        screen.answer(result | {"backup": None}, f"{words} {path}")
        return 0
    after = setup_claude_code.dump(wanted, before)
    if options.dry_run:
        diff = _diff(path, before or b"", after)
        screen.answer(result | {"diff": diff}, screen.diff(diff))
        return 0
    if not options.remove:
        hook_file.write(places)
    backup = None if wanted == settings else _write(path, before, after, empty=not wanted)
    if options.remove:
        hook_file.remove(places)
    if backup:
        screen.note(f"as it was before: {backup}")
    if not options.remove:
        screen.note("Claude Code reads its hooks when it starts: start it anew")
        _suggest_program(invocation)
    words = "took memd's hooks out of" if options.remove else "wrote memd's hooks into"
    screen.answer(result | {"backup": backup}, f"{words} {path}")
    return 0


def check(invocation: Invocation) -> dict[str, str]:
    """Return a check for ``doctor``: whether the hooks are in place."""
    path = setup_claude_code.default_path(invocation.environ, invocation.around.home)
    try:
        settings = setup_claude_code.parse(setup_claude_code.read(path), path)
    except MemdError as error:
        return _finding("failed", str(error), error.hint)
    hook = hook_file.hook_path(invocation.places)
    states = set(setup_claude_code.states(settings, hook).values())
    remedy = "memctl setup claude-code"
    if states == {"absent"}:
        return _finding("off", f"no hooks of memd in {path}", remedy)
    if settings.get("disableAllHooks"):
        return _finding("warning", f"disableAllHooks is set in {path}", "take it out there")
    if states != {"installed"}:
        return _finding("warning", f"some hooks in {path} are missing or old", remedy)
    if not hook_file.is_current(invocation.places):
        return _finding("warning", f"{hook} is missing or another version's", remedy)
    return _finding("ok", path, "")


def _suggest_program(invocation: Invocation) -> None:
    """Say that a program which is here could learn for memd, where no model is configured."""
    config = invocation.places.config
    path = invocation.environ.get("PATH", "")
    here = [preset for preset, name in _PROGRAMS.items() if shutil.which(name, path=path)]
    if here and not service_unit.provider(config):
        invocation.screen.note(
            f"memd can learn with {here[0]}, without a key and on your own plan with it, some "
            f"30 runs a day at most. To switch that on, write into {config}: [model] "
            f'provider = "command", preset = "{here[0]}"'
        )


def _measured(invocation: Invocation) -> int | None:
    """Return what prompts need in ms for the model to choose, ``None`` where nobody can tell."""
    screen = invocation.screen
    try:
        with open(invocation.places.config, encoding="utf-8", errors="replace") as opened:
            if "[model]" not in opened.read() or invocation.options.dry_run:
                return None
        probe = invocation.call("recall.probe")
    except (OSError, MemdError) as error:
        if not isinstance(error, FileNotFoundError):
            screen.note(f"the model was not measured: {error}")
        return None
    if probe["seconds"] is None:
        screen.note(f"prompts get their memories without a model: {probe['problem']}")
    else:
        took, wait = probe["seconds"], probe["deadline_ms"]
        screen.note(f"the model chose in {took:.1f} s: prompts wait {wait} ms at most")
    return int(probe["deadline_ms"])


def _finding(state: str, detail: str, remedy: str) -> dict[str, str]:
    return {"name": "claude-code", "state": state, "detail": detail, "remedy": remedy}


def _path(invocation: Invocation) -> str:
    given = invocation.options.settings
    return (
        os.path.abspath(given)
        if given
        else setup_claude_code.default_path(invocation.environ, invocation.around.home)
    )


def _status(invocation: Invocation, path: str, settings: setup_claude_code.Settings) -> int:
    hook = hook_file.hook_path(invocation.places)
    states = setup_claude_code.states(settings, hook)
    ready = hook_file.is_current(invocation.places)
    disabled = bool(settings.get("disableAllHooks"))
    if disabled:
        invocation.screen.note(f"disableAllHooks is set in {path}: Claude Code runs no hook")
    rows = [
        (event, invocation.screen.paint(state, _STYLES[state])) for event, state in states.items()
    ]
    if not ready:
        invocation.screen.note(f"{hook} is missing or another version's")
    invocation.screen.answer(
        {"settings": path, "events": states, "disabled": disabled, "hook": ready},
        output.table(rows),
    )
    return 0 if set(states.values()) == {"installed"} and ready and not disabled else 1


def _write(path: str, before: bytes | None, after: bytes, *, empty: bool) -> str | None:
    """Write the settings and return the backup's path, if there was something to keep."""
    if empty and not os.path.exists(f"{path}.memd-backup-1"):
        os.unlink(path)  # the file was ours alone: there was none before the first set-up
        return None
    backup = None if before is None else setup_claude_code.back_up(path, before)
    setup_claude_code.write(path, after, before)
    return backup


def _diff(path: str, before: bytes, after: bytes) -> str:
    old = before.decode(errors="replace").splitlines(keepends=True)
    new = after.decode(errors="replace").splitlines(keepends=True)
    lines = difflib.unified_diff(old, new, path, f"{path} (with memd)")
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
