"""status: one screen with memd's health, open decisions and running work.

The most important lines come first; on a terminal the last ones are left out if they do not fit.
"""

import time
from collections.abc import Iterator, Mapping
from typing import Any

from memd.cli import output
from memd.cli.invocation import TAKE_OVER, Invocation

_MAX_NAMES = 3  # on a line
_MAX_LINES = 2  # about one thing
_STYLES = {"failed": "red", "warning": "yellow"}
Pairs = Iterator[tuple[str, object]]  # names and values


def status(invocation: Invocation) -> None:
    """Print the daemon's status."""
    answer = invocation.request(cwd=None)
    view = StatusView(answer, invocation.surroundings.home, invocation.other_version())
    screen = invocation.screen
    lines = output.facts(view.pairs(screen), screen.width).splitlines()
    if screen.height:
        del lines[screen.height - 1 :]  # the last line of the screen is for the shell's prompt
    screen.answer(answer, "\n".join(lines))


class StatusView:
    """The daemon's status as lines; an older daemon's answer may lack some members."""

    def __init__(self, answer: Mapping[str, Any], home: str, other_version: str = "") -> None:
        self._answer = answer
        self._home = home
        self._other_version = other_version  # a sentence, "" if memctl has the daemon's version
        self._now = time.time()

    def pairs(self, screen: output.Screen) -> Pairs:
        """Yield names and values, the most important first."""
        answer = self._answer
        size = output.size(answer["rss"]) if answer["rss"] else ""
        count = answer["connections"]
        connected = f"{count} connection{'s' * (count != 1)}"
        uptime = f"up {output.duration(answer['uptime'])}"
        facts = (answer["version"], uptime, f"pid {answer['pid']}", size, connected)
        yield answer["name"], ", ".join(filter(None, facts))
        if self._other_version:
            yield "", f"{self._other_version}: {TAKE_OVER}"
        yield from _name_first_line("health", self._health_lines(screen), "")
        yield from _name_first_line("waiting", self._decision_lines(), "nothing for you")
        yield from _name_first_line("working", self._work_lines(), "nothing runs")
        yield from _name_first_line("paused", self._pause_line(), "")
        breaker_lines = _first_lines(self._breaker_lines(), "memctl resume asks at once")
        yield from _name_first_line("no model", breaker_lines, "")
        yield from self._model_pairs()
        yield "last dream", self._last_dream_words()
        yield "sessions", self._session_words()
        yield from _name_first_line("passed over", self._passed_over_lines(), "")
        yield "projects", self._project_words()
        newest_notes = list(answer["notes"])[::-1]
        yield from _name_first_line("note", _first_lines(newest_notes, "memctl logs"), "")
        yield "socket", answer["socket"]
        yield "state", answer["state_dir"]

    def _health_lines(self, screen: output.Screen) -> Iterator[str]:
        """Yield the worst failed check with its remedy, and the number of others."""
        checks = self._answer.get("health")
        if checks is None:  # an older daemon
            return
        if not checks:
            yield screen.paint("all is well", "green")
            return
        # The first failed check, or the first warning if none failed.
        worst = min(checks, key=lambda check: check["state"] != "failed")
        state = screen.paint(worst["state"], _STYLES.get(worst["state"], "dim"))
        yield f"{state}: {worst['name']}: {worst['detail']}"
        more = f" ({len(checks) - 1} more: memctl doctor)" if len(checks) > 1 else ""
        yield f"→ {worst['remedy'] or 'memctl doctor'}{more}"

    def _decision_lines(self) -> Iterator[str]:
        """Yield the counts of what a person has to decide, with the commands that show it."""
        answer = self._answer
        conflicts = answer.get("conflicts") or {}
        counts = (
            (sum((answer.get("proposals") or {}).values()), "proposal"),
            ((answer.get("suggestions") or {}).get("open", 0), "suggestion"),
            (answer.get("held", 0), "message"),
            (sum(conflicts.values()), "team file"),
        )
        words = [f"{count} {noun}{'s' * (count != 1)}" for count, noun in counts if count]
        if words:
            yield f"{', '.join(words)}: memctl review --all"
        rules = answer.get("rules") or {}
        broken_rules = rules.get("changed", 0) + rules.get("gone", 0)
        if broken_rules:
            rule_words = f"{broken_rules} rule{'s' * (broken_rules != 1)}"
            yield f"{rule_words} whose memory changed or is gone: memctl rule list"
        team_states = [
            f"{state} in {self.place(directory)}"
            for directory, state in (answer.get("teams") or {}).items()
            if state not in {"equal", "changed"} and directory not in conflicts
        ]
        if team_states:
            yield f"team: {', '.join(team_states[:_MAX_NAMES])}: memctl team status"

    def _passed_over_lines(self) -> Iterator[str]:
        """Yield how many conversations nothing was learnt from, with the setting to change."""
        for row in self._answer.get("passed_over") or ():
            count = row["conversations"]
            words = f"{count} conversation{'s' * (count != 1)}"
            yield f"{words}: {row['reason']} ({row['setting']})"

    def _work_lines(self) -> Iterator[str]:
        """Yield the jobs that run, and how many others there are by state."""
        for job in self._answer.get("running") or ():
            yield f"{job['kind']} in {self.place(job['directory'])}: {job_words(job, self._now)}"
        jobs = self._answer["jobs"]
        waiting = [f"{jobs[state]} {state}" for state in ("queued", "failed") if jobs.get(state)]
        if jobs.get("parked"):
            waiting.append(f"{jobs['parked']} parked (memctl job list --parked)")
        if waiting:
            yield ", ".join(waiting)

    def _pause_line(self) -> Iterator[str]:
        """Yield a line if a person has paused background work, with how long ago."""
        since = self._answer.get("paused_since")
        if since is not None:
            passed = output.duration(self._now - since)
            yield f"for {passed}; memctl resume lets background work go on"

    def _breaker_lines(self) -> list[str]:
        """Return a line for each directory whose model calls are paused, with the reason."""
        lines = []
        for row in self._answer.get("breakers") or ():
            span = output.duration(row["until"] - self._now)
            lines.append(f"for {self.place(row['directory'])} in the next {span}: {row['why']}")
        return lines

    def _model_pairs(self) -> Pairs:
        """Yield the money spent today and the model in use."""
        model, spend = self._answer.get("model"), self._answer.get("spend")
        if spend:
            yield "spend", f"{spend_words(spend)} today"
            yield from (("", line) for line in stopped_work_lines(spend)[:_MAX_LINES])
        if model:
            names = ", ".join(sorted(set(model["names"].values())))
            source = f", by {model['source']}" if model.get("source") else ""
            words = f"{names} at {model['host']}{source}" if model["configured"] else "none"
            yield "model", f"{words} ({model['problem']})" if model["problem"] else words

    def _last_dream_words(self) -> str:
        """Return when and where the last dream ran and what it did, or "" for none."""
        dream = self._answer.get("last_dream")
        if not dream:
            return ""
        counts = ", ".join(f"{count} {name}" for name, count in dream["counts"].items() if count)
        result_words = counts
        if not counts:
            result_words = "nothing to do" if dream["state"] == "completed" else dream["state"]
        age = output.age(self._now - dream["at"])
        return f"{age} in {self.place(dream['directory'])}: {result_words}"

    def _session_words(self) -> str:
        """Return the last few sessions: client, project and age."""
        words = []
        for session in (self._answer.get("sessions") or ())[:_MAX_NAMES]:
            age = output.age(self._now - session["at"])
            words.append(f"{session['client']} in {self.place(session['project'])} {age}")
        return "; ".join(words)

    def _project_words(self) -> str:
        """Return the number of projects and the first few of them."""
        projects = self._answer["projects"]
        more = f" and {len(projects) - _MAX_NAMES} more" if len(projects) > _MAX_NAMES else ""
        names = ", ".join(map(self.place, projects[:_MAX_NAMES]))
        return f"{len(projects)}: {names}{more}" if projects else ""

    def place(self, directory: str) -> str:
        """Return a directory in its short form, a memory directory as its project's folder."""
        folders = self._answer.get("folders") or {}
        return output.place(folders.get(directory, directory), self._home)


def job_words(job: Mapping[str, Any], now: float) -> str:
    """Return the phase, turn and running time of a job."""
    progress = job.get("progress") or {}
    turn = f"turn {progress['turn']:g}" if progress.get("turn") else ""
    passed = output.duration(now - job["since"]) if job.get("since") else ""
    return ", ".join(filter(None, (job["phase"], turn, passed))) or "it begins"


def spend_words(today: Mapping[str, Any]) -> str:
    """Return today's cost and requests beside the daily limits."""
    used, runs = today["used"], today.get("runs_per_day")
    money = f"${used['dollars']:.4f} of ${today['dollars_per_day']:.2f}"
    unit = "requests" if runs is None else f"of {runs} runs"
    return f"{money}, {used['requests']} {unit}"


def stopped_work_lines(today: Mapping[str, Any]) -> list[str]:
    """Return a line for each kind of work that a spending cap has stopped until tomorrow."""
    return [f"{kind} stands still until tomorrow: {cap}" for kind, cap in today["caps"].items()]


def _name_first_line(name: str, lines: Iterator[str], empty_text: str) -> Pairs:
    """Yield lines as pairs, the first one with ``name``; without lines, yield ``empty_text``."""
    has_lines = False
    for line in lines:
        yield ("" if has_lines else name), line
        has_lines = True
    if not has_lines:
        yield name, empty_text


def _first_lines(lines: list[str], more: str) -> Iterator[str]:
    """Yield the first lines, and the number of the others with the command that shows them."""
    yield from lines[:_MAX_LINES]
    if len(lines) > _MAX_LINES:
        yield f"{len(lines) - _MAX_LINES} more: {more}"
