"""What doctor says of each client: every broken link with its remedy."""

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from memd.cli.setup import files, jsonc
from memd.cli.setup.clients import ClientRow, Switch
from memd.cli.setup.hooks import MESSAGES, RULES
from memd.cli.setup.pieces import ABSENT, INSTALLED, JsonFile
from memd.cli.setup.plan import has, in_use, state, uses_hooks
from memd.client.launch import hook_file
from memd.core.errors import MemdError
from memd.core.places import Places

# Names under which other programs that remember are run by clients.
_MEMORIES = re.compile(
    r"(?<![a-z])(claude-mem|mem0|\w*-?memory|memory-\w+|zep|letta)(?![a-z])", re.IGNORECASE
)
Check = dict[str, str]


def client_checks(client: ClientRow, places: Places, environ: Mapping[str, str]) -> Iterator[Check]:
    """Yield the rows of one client; none for one that is not here and was never set up."""
    remedy = f"memctl setup {client.name}"
    try:
        now = state(client)
    except MemdError as error:
        yield _row(client, "failed", str(error), error.hint)
        return
    if now == ABSENT:
        if enabled := plugin(client):
            yield _row(client, "ok", enabled, "")
        elif in_use(client, environ):
            yield _row(client, "off", "not set up", remedy)
        return
    problems = [*_problems(client, now, places), *_others(client)]
    for detail, help_ in problems:
        yield _row(client, "warning", detail, help_ or remedy)
    if not problems:
        more = [f", with {extra}" for extra in (MESSAGES, RULES) if has(client, extra)]
        yield _row(client, "ok", "".join([client.pieces[0].path, *more]), "")


def value(path: str, keys: jsonc.Path) -> Any:
    """Return a value of a JSON or TOML file, ``None`` where there is none to be read."""
    data: Any = None
    with suppress(ValueError, MemdError):
        text = (files.read(path) or b"").decode("utf-8-sig")
        root = None if path.endswith(".toml") else jsonc.parse(text)
        data = tomllib.loads(text) if path.endswith(".toml") else root and root.value
    for key in keys:
        data = data.get(key) if isinstance(data, dict) else None
    return data


def plugin(client: ClientRow) -> str:
    """Return that memd's plugin does the work, empty where it is not enabled."""
    for name, enabled in _enabled(client).items():
        if enabled is True and name.startswith("memd@"):
            return f"memd's plugin {name} is enabled"
    return ""


def _problems(client: ClientRow, now: str, places: Places) -> Iterator[tuple[str, str]]:
    if now != INSTALLED:
        yield f"{client.pieces[0].path} is {now}: it is not all that this memd writes", ""
    if not uses_hooks(client):
        return
    python = f"{places.data_dir}/python"
    if os.path.lexists(python) and not os.path.exists(python):
        yield f"the Python of the hook is gone: {os.readlink(python)}", ""
    elif now == INSTALLED and not hook_file.is_current(places):
        yield f"{hook_file.hook_path(places)} is missing or another version's", ""
    for switch in client.switches:
        if value(switch.path, switch.keys) is switch.off:
            name = ".".join(switch.keys)
            yield f"{switch.path} keeps hooks from running", f"see {name} there{_owner(switch)}"
    if enabled := plugin(client):
        yield (
            f"{enabled}, and its settings have the hooks too",
            f"memctl setup {client.name} --remove",
        )


def _owner(switch: Switch) -> str:
    return "" if os.access(switch.path, os.W_OK) else "; whoever runs this machine decides that"


def _enabled(client: ClientRow) -> Mapping[str, Any]:
    plugins = value(client.pieces[0].path, ("enabledPlugins",)) if client.pieces else None
    return plugins if isinstance(plugins, dict) else {}


def _others(client: ClientRow) -> Iterator[tuple[str, str]]:
    """Yield what else remembers in this client: two that learn from the same talk disagree."""
    names = [name for name, enabled in _enabled(client).items() if enabled is True]
    for piece in client.pieces:
        if isinstance(piece, JsonFile):
            servers = (value(piece.path, path[:-1]) for path in piece.values)
            names += [name for group in servers if isinstance(group, dict) for name in group]
    for name in names:
        if _MEMORIES.search(name) and not name.startswith("memd"):
            yield f"{name} remembers here as well", f"switch one of them off in {client.title}"


def _row(client: ClientRow, state_: str, detail: str, remedy: str) -> Check:
    return {"name": client.name, "state": state_, "detail": detail, "remedy": remedy}
