"""status, spend, doctor, watch, stop, sockname and discover: the daemon itself."""

import os
import time
from collections.abc import Mapping
from typing import Any

from memd.cli import output
from memd.cli.invocation import JOB_SECONDS, Invocation
from memd.client.errors import DaemonUnavailableError

_HEAD = ("requests", "input", "output", "cached", "dollars")
_STYLES = {"ok": "green", "warning": "yellow", "failed": "red"}


def status(invocation: Invocation) -> None:
    """Print how the daemon is."""
    answer = invocation.request(cwd=None)
    jobs = ", ".join(f"{count} {state}" for state, count in sorted(answer["jobs"].items()))
    pairs: list[tuple[str, object]] = [
        (answer["name"], f"{answer['version']}, up {output.duration(answer['uptime'])}"),
        ("pid", answer["pid"]),
        ("size", output.size(answer["rss"]) if answer["rss"] else ""),
        ("socket", answer["socket"]),
        ("state", answer["state_dir"]),
        ("connections", answer["connections"]),
        ("jobs", jobs),
    ]
    pairs += _held_up(answer)
    pairs += [("project", directory) for directory in answer["projects"]]
    pairs += _proposals(answer)
    pairs += _suggestions(answer)
    pairs += _contexts(answer)
    pairs += _teams(answer)
    pairs += _model(answer)
    pairs += [("note", note) for note in answer["notes"]]
    invocation.screen.answer(answer, output.facts(pairs))


def _model(answer: dict[str, Any]) -> list[tuple[str, object]]:
    """Return the model and what it cost today, as far as the daemon is new enough to tell."""
    model, spend = answer.get("model"), answer.get("spend")
    pairs: list[tuple[str, object]] = []
    if model:
        names = ", ".join(sorted(set(model["names"].values())))
        pairs.append(("model", f"{names} at {model['host']}" if model["configured"] else "none"))
        pairs += [("", model["problem"]), ("", model.get("source") and f"by {model['source']}")]
    if spend:
        pairs.append(("spend", f"{_bounded(spend)} today"))
        pairs += [("", line) for line in _standing_still(spend)]
    return pairs


def _proposals(answer: dict[str, Any]) -> list[tuple[str, object]]:
    """Return what dreams want a person to decide, if the daemon is new enough to tell."""
    return [
        ("dream", f"{count} proposal{wait} for you in {directory}: memctl dream review")
        for directory, count in (answer.get("proposals") or {}).items()
        for wait in (" waits" if count == 1 else "s wait",)
    ]


def _suggestions(answer: dict[str, Any]) -> list[tuple[str, object]]:
    """Return how many suggestions wait and what became of others, if there were any."""
    counts = answer.get("suggestions") or {}
    words = f"{counts.get('open', 0)} open: memctl suggestions; " + ", ".join(
        f"{count} {state}" for state, count in counts.items() if state != "open"
    )
    return [("suggested", words)] if any(counts.values()) else []


def _contexts(answer: dict[str, Any]) -> list[tuple[str, object]]:
    """Return what is stored of conversations and which caches were lost, if there are any."""
    totals = answer.get("contexts") or {}
    if not totals.get("conversations"):
        return []
    stored = f"stored results: {totals['results']}, {output.size(totals['bytes'])}"
    lost = f"caches lost: {totals['breaks']}; {totals['missed']:,} tokens paid again"
    return [
        ("context", f"conversations: {totals['conversations']}; {stored}"),
        ("", lost if totals["breaks"] else ""),
    ]


def _teams(answer: dict[str, Any]) -> list[tuple[str, object]]:
    """Return the projects that joined a team and are not equal with it."""
    return [
        ("team", f"{state} in {directory}: memctl team status")
        for directory, state in (answer.get("teams") or {}).items()
        if state != "equal"
    ]


def _held_up(answer: dict[str, Any]) -> list[tuple[str, object]]:
    """Return what keeps background work from going on."""
    pairs: list[tuple[str, object]] = []
    now = time.time()
    since = answer.get("paused_since")
    if since is not None:
        words = f"for {output.duration(now - since)}; memctl resume lets background work go on"
        pairs.append(("paused", words))
    for row in answer.get("breakers") or ():
        left = output.duration(row["until"] - now)
        pairs.append(("no model", f"for {row['directory']} in the next {left}: {row['why']}"))
    return pairs


def spend(invocation: Invocation) -> None:
    """Print what was used, a row for each day, kind, project or model, and the sum."""
    answer = invocation.request(cwd=None)
    screen = invocation.screen
    today = answer["today"]
    rows: list[tuple[str, ...]] = [(answer["by"], *_HEAD)]
    rows += [(row["label"], *_cells(row)) for row in answer["rows"]]
    rows.append(("all", *_cells(answer["total"])))
    lines = [output.table(rows, screen.width), f"today: {_bounded(today)}"]
    lines += _standing_still(today)
    screen.answer(answer, "\n".join(lines))


def doctor(invocation: Invocation) -> int:
    """Print each check with its remedy; 1 when one failed."""
    # The home directory is no project, and that is nothing to be cured of.
    cwd = invocation.cwd
    home = os.path.realpath(invocation.around.home)
    try:
        answer = invocation.call("doctor", cwd=None if os.path.realpath(cwd) == home else cwd)
        checks, failure = list(answer["checks"]), 1
        checks += _version_checks(invocation)
    except DaemonUnavailableError as error:  # then this side's checks are worth all the more
        failure = error.exit_status
        checks = [{"name": "daemon", "state": "failed", "detail": str(error), "remedy": error.hint}]
    checks += _local_checks(invocation)
    ok = all(check["state"] != "failed" for check in checks)
    lines = []
    for check in checks:
        state = invocation.screen.paint(f"{check['state']:<8}", _STYLES.get(check["state"], "dim"))
        lines.append(f"{state}{check['name']}: {check['detail']}")
        if check["remedy"]:
            lines.append(f"        → {check['remedy']}")
    invocation.screen.answer({"ok": ok, "checks": checks}, "\n".join(lines))
    return 0 if ok else failure


def watch(invocation: Invocation) -> int:
    """Print events until interrupted, or as many as were asked for."""
    options = invocation.options
    cwd = invocation.cwd if options.here else None
    invocation.call("subscribe", topics=options.topic, cwd=cwd)
    left = options.count
    for event in invocation.client().notifications(options.timeout or JOB_SECONDS):
        if invocation.screen.as_json:
            invocation.screen.data({"method": event.method, "params": event.params})
        else:
            invocation.screen.line(
                f"{time.strftime('%H:%M:%S')}  {event.method:<14}  {_event_line(event)}"
            )
        left = None if left is None else left - 1
        if left == 0:
            break
    return 0


def stop(invocation: Invocation) -> None:
    """Ask the daemon to end, if there is one, and wait until it hangs up."""
    answer = invocation.stop()
    if answer is None:
        invocation.screen.note("no memd is running")
        invocation.screen.answer({"stopping": False}, "")
    else:
        invocation.screen.answer(answer, "stopped")


def sockname(invocation: Invocation) -> None:
    """Print the socket's path."""
    path = invocation.places.socket
    invocation.screen.answer({"socket": path}, path)


def discover(invocation: Invocation) -> None:
    """Print the OpenRPC document."""
    invocation.screen.data(invocation.request(cwd=None))


def _event_line(event: Any) -> str:
    params = dict(event.params)
    files = params.pop("files", None) or []
    touched = [f"{file['action']} {file['path']}" for file in files if isinstance(file, dict)]
    plain = [f"{key} {value}" for key, value in params.items() if isinstance(value, str | int)]
    # One event is one line, whatever a model said in it.
    return " ".join(", ".join([*touched, *plain]).split())


def _local_checks(invocation: Invocation) -> list[dict[str, str]]:
    """Look at what only this side can see: the clients' hooks and the service."""
    from memd.cli.commands import service, setup  # noqa: PLC0415 - doctor alone needs both here

    return [*setup.check(invocation), service.check(invocation)]


def _version_checks(invocation: Invocation) -> list[dict[str, str]]:
    """Return a row where the daemon is another version's."""
    other = invocation.other_version()
    remedy = "memctl shutdown, and the next command starts this one"
    row = {"name": "version", "state": "warning", "detail": other, "remedy": remedy}
    return [row] if other else []


def _bounded(today: Mapping[str, Any]) -> str:
    """Return today's money, or a program's runs, with the bound."""
    used, runs = today["used"], today.get("runs_per_day")
    money = f"${used['dollars']:.4f} of ${today['dollars_per_day']:.2f}"
    return f"{money}, {used['requests']} {'requests' if runs is None else f'of {runs} runs'}"


def _standing_still(today: Mapping[str, Any]) -> list[str]:
    """Return a line for each kind of work that a cap has stopped."""
    return [f"{kind} stands still until tomorrow: {cap}" for kind, cap in today["caps"].items()]


def _cells(used: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        str(used["requests"]),
        str(used["input"] + used["cache_created"]),
        str(used["output"]),
        str(used["cache_read"]),
        f"{used['dollars']:.4f}",
    )
