"""extract: look for memories in a conversation, by a job."""

from collections.abc import Callable, Mapping
from typing import Any

from anyio import to_thread

from memd.base.covered import CoveredText
from memd.base.recent import Recent
from memd.base.settings import Settings
from memd.base.values import Project
from memd.extract.requests import gate
from memd.jobs.methods import Ended, request_of, result_of
from memd.jobs.service import Jobs
from memd.methods.callers import Callers
from memd.methods.method import SessionId, method
from memd.rpc.call import Call
from memd.transcripts import reading

_KEEPER = "keeper"  # the SDK's middleware: a program that uses it has asked for extraction
_SESSIONS = 1000  # of which it is known that they were passed over


class Extracted(Ended):
    """The result of an extraction."""

    saved: list[str] | None = None
    updated: list[str] | None = None
    removed: list[str] | None = None
    refused: int | None = None
    suggested: int | None = None
    passed_over: dict[str, int] | None = None
    already_said: list[CoveredText] | None = None
    problem: str | None = None
    hit_rate: float | None = None
    prefix_changed: list[str] | None = None


class ExtractionStarter:
    """Begins extractions; ``remember`` gets a session and its client's last request to a model.

    ``passed_over`` has the reason by the session in front of which no person sat.
    """

    def __init__(
        self,
        callers: Callers,
        jobs: Jobs,
        remember: Callable[[str, Mapping[str, Any] | None], None],
    ) -> None:
        self._callers = callers
        self._jobs = jobs
        self._remember = remember
        # The sessions that were passed over since memd began, so that a person can see it.
        self.passed_over: Recent[str, str] = Recent(_SESSIONS)

    @method("extract", "write")
    async def extract(
        self,
        call: Call,
        *,
        cwd: str,
        session_id: SessionId,
        transcript_path: str | None = None,
        messages: list[Any] | None = None,
        cache: dict[str, Any] | None = None,
        wait: bool = False,
    ) -> Extracted:
        """Look for memories in a conversation, by a job; answers at once unless ``wait`` is
        given.
        """
        reading.check_source(transcript_path, messages)
        project, settings, _ = await to_thread.run_sync(self._callers.where, call, cwd)
        self._remember(session_id, cache)
        result = await self.submit(
            call,
            project,
            settings,
            cwd=cwd,
            session=session_id,
            transcript_path=transcript_path,
            messages=messages,
            cache=cache,
        )
        if not (wait and result.job):
            return result
        return await result_of(self._jobs, result.job, Extracted)

    async def submit(
        self,
        call: Call,
        project: Project,
        settings: Settings,
        *,
        cwd: str,
        session: str,
        transcript_path: str | None,
        messages: list[Any] | None = None,
        cache: dict[str, Any] | None = None,
        ended: bool = False,
    ) -> Extracted:
        """Submit an extraction, or return the gate that is closed. Raises Refused.

        ``ended`` says that the session has ended, not only a turn of it.
        """
        reason = gate(settings, project)
        has_consent = settings.extract.allow_remote or call.caller.client == _KEEPER
        if not reason and not has_consent:
            reason = _unattended_reason(call)
            if reason:
                self.passed_over[session] = reason
        if reason:
            return Extracted(status="skipped", reason=reason)
        if transcript_path is not None:
            await to_thread.run_sync(reading.check, transcript_path)
        request = request_of(call, cwd) | {
            "session": session,
            "transcript_path": transcript_path,
            "messages": messages,
            "cache": cache,
            "ended": ended,
        }
        submitted = await self._jobs.submit("extract", project.memory_dir, session, request)
        return Extracted(status=submitted.status, job=submitted.job)


def _unattended_reason(call: Call) -> str:
    """Return "remote" or "unattended" if the client says that no person uses it, else ""."""
    environment = call.caller.environment
    remote = environment.get("CLAUDE_CODE_REMOTE", "").strip().lower()
    if remote not in {"", "0", "false", "no", "off"}:
        return "remote"
    # `claude -p` sets this to 0 for its hooks; editors that run it for a person do not.
    return "unattended" if environment.get("CLAUDE_CODE_SESSION_ATTENDED") == "0" else ""
