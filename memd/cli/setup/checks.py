"""The rows about each client in `memctl doctor`: whether its set-up works, with a remedy if not.

A set-up is what ``memctl setup`` writes into the configuration files of a client, which is a
program such as Claude Code that runs memd's hooks or its MCP server.
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from memd.base.errors import MemdError
from memd.base.places import Places
from memd.cli.setup import files, jsonc
from memd.cli.setup.clients import ClientRow, Switch
from memd.cli.setup.hooks import MESSAGES, RULES
from memd.cli.setup.parts import ABSENT, INSTALLED, SettingsPart
from memd.cli.setup.plan import has_extra, state
from memd.client import hook_file

# Names under which other programs that remember are run by clients.
_MEMORY_PROGRAMS = re.compile(
    r"(?<![a-z])(claude-mem|mem0|\w*-?memory|memory-\w+|zep|letta)(?![a-z])", re.IGNORECASE
)
Check = dict[str, str]


def client_checks(client: ClientRow, places: Places, environ: Mapping[str, str]) -> Iterator[Check]:
    """Yield the rows of ``doctor`` about one client; none if it is neither installed nor set up."""
    remedy = f"memctl setup {client.name}"
    try:
        set_up = state(client)
    except MemdError as error:
        yield _row(client, "failed", str(error), error.hint)
        return
    if set_up == ABSENT:
        plugin_sentence = enabled_plugin(client)
        if plugin_sentence:
            yield _row(client, "ok", plugin_sentence, "")
        elif client.is_in_use(environ):
            yield _row(client, "off", "not set up", remedy)
        return
    problems = [*_problems(client, set_up, places), *_other_memory_programs(client)]
    for detail, fix in problems:
        yield _row(client, "warning", detail, fix or remedy)
    if not problems:
        extras = [f", with {extra}" for extra in (MESSAGES, RULES) if has_extra(client, extra)]
        place = client.parts[0].path if client.parts else "the installer of memd connects it"
        yield _row(client, "ok", "".join([place, *extras]), "")


def memory_switch(client: ClientRow, config: str) -> str:
    """Return what holds if the person switched Claude Code's own memory off, else "".

    ``config`` is the path of memd's settings.
    """
    if client.name != "claude-code":
        return ""
    path = client.parts[0].path
    if value(path, ("autoMemoryEnabled",)) is not False:
        return ""
    said = f"autoMemoryEnabled is false in {path}"
    if value(config, ("claude_code", "bring_memory")) is True:
        return f"{said}; memd brings memory all the same: claude_code.bring_memory is true"
    return (
        f"{said}, so memd is silent there; claude_code.bring_memory = true in {config} changes it"
    )


def value(path: str, keys: jsonc.Path) -> Any:
    """Return the value under the keys of a JSON or TOML file, ``None`` if it cannot be read."""
    data: Any = None
    with suppress(ValueError, MemdError):
        text = (files.read(path) or b"").decode("utf-8-sig")
        if path.endswith(".toml"):
            import tomllib  # noqa: PLC0415 - most files are JSON

            data = tomllib.loads(text)
        else:
            root = jsonc.parse(text)
            data = root.value if root else None
    for key in keys:
        data = data.get(key) if isinstance(data, dict) else None
    return data


def enabled_plugin(client: ClientRow) -> str:
    """Return a sentence that names memd's enabled plugin, empty if the client has none."""
    for name, enabled in _plugin_switches(client).items():
        if enabled is True and name.startswith("memd@"):
            return f"memd's plugin {name} is enabled"
    return ""


def _problems(client: ClientRow, set_up: str, places: Places) -> Iterator[tuple[str, str]]:
    """Yield each fault of a client's set-up with its remedy, empty for "run setup again".

    ``set_up`` is the state of the set-up; see ``plan.state``.
    """
    if set_up != INSTALLED:
        yield f"{client.parts[0].path} is {set_up}: it is not all that this memd writes", ""
    if not client.has_hooks:
        return
    if python := hook_file.lost_interpreter(places):
        yield f"the Python of the hook is gone: {python}", ""
    elif set_up == INSTALLED and not hook_file.is_current(places):
        yield f"{hook_file.hook_path(places)} is missing or another version's", ""
    for switch in client.switches:
        if value(switch.path, switch.keys) is switch.off:
            name = ".".join(switch.keys)
            yield (
                f"{switch.path} keeps hooks from running",
                f"see {name} there{_policy_note(switch)}",
            )
    plugin_sentence = enabled_plugin(client)
    if plugin_sentence:
        yield (
            f"{plugin_sentence}, and its settings have the hooks too",
            f"memctl setup {client.name} --remove",
        )


def _policy_note(switch: Switch) -> str:
    """Return a note that the administrator owns a switch's file, empty if the user may write it."""
    return "" if os.access(switch.path, os.W_OK) else "; whoever runs this machine decides that"


def _plugin_switches(client: ClientRow) -> Mapping[str, Any]:
    """Return the client's plugins by name, each with whether it is enabled."""
    plugins = value(client.parts[0].path, ("enabledPlugins",)) if client.parts else None
    return plugins if isinstance(plugins, dict) else {}


def _other_memory_programs(client: ClientRow) -> Iterator[tuple[str, str]]:
    """Yield a warning for each other memory program in this client.

    Two programs that learn from the same conversation contradict each other.
    """
    names = [name for name, enabled in _plugin_switches(client).items() if enabled is True]
    for part in client.parts:
        if isinstance(part, SettingsPart):
            # The group that holds memd's server holds those of other programs too.
            servers = (value(part.path, path[:-1]) for path in part.values)
            names += [name for group in servers if isinstance(group, dict) for name in group]
    for name in names:
        if _MEMORY_PROGRAMS.search(name) and not name.startswith("memd"):
            yield f"{name} remembers here as well", f"switch one of them off in {client.title}"


def _row(client: ClientRow, state_: str, detail: str, remedy: str) -> Check:
    """Return one row of ``doctor``; ``state_`` is ok, warning, off or failed."""
    return {"name": client.name, "state": state_, "detail": detail, "remedy": remedy}
