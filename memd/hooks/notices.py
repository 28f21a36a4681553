"""One line for the person on what was saved, with the command that takes it back."""

from collections.abc import Sequence
from contextlib import suppress

from anyio import to_thread

from memd.base.clock import Clock
from memd.base.errors import MemdError
from memd.base.names import printable
from memd.base.recent import Recent
from memd.base.text import one_line
from memd.hooks.event import HookEvent
from memd.jobs.service import Jobs
from memd.store.read import MemoryReader

_REMEMBERED_JOBS = 1024
_JOBS_SEARCHED = 20  # the newest jobs, which may have saved something
_SECONDS = 0.02  # what is not found by then is shown with the next prompt
_SHOWN = 3  # changes, and sentences of each
_SENTENCE_CHARACTERS = 80

Saved = tuple[str, Sequence[str]]  # a change, and the sentences that it saved


class Notices:
    """Tells once of each extraction that ended since this object was made."""

    def __init__(self, jobs: Jobs, reading: MemoryReader, clock: Clock) -> None:
        self._jobs = jobs
        self._reading = reading
        self._clock = clock
        self._began = clock.monotonic()
        self._shown: Recent[str, None] = Recent(_REMEMBERED_JOBS)  # jobs

    async def line(self, event: HookEvent) -> str:
        """Return one line on memories saved here and not shown yet; "" for none or if unwanted."""
        if not (event.dialect.notices and event.settings.extract.notify):
            return ""
        with self._clock.move_on_after(_SECONDS), suppress(MemdError):
            saved = await to_thread.run_sync(self._unseen, event.project.memory_dir)
            for job in saved:
                self._shown[job] = None
            return saved_line([each for each in saved.values() if each[1]])
        return ""

    def _unseen(self, directory: str) -> dict[str, Saved]:
        """Return what jobs saved that were not shown yet, the newest first. Blocks.

        What was removed since, or taken back, is left out.
        """
        began = self._clock.now() - (self._clock.monotonic() - self._began)
        results = {
            job.id: job.result
            for job in self._jobs.list(directory, _JOBS_SEARCHED)
            if job.kind == "extract" and (job.ended or 0) >= began and job.id not in self._shown
            if job.result and job.result.get("change")
        }
        if not results:
            return {}
        headers = self._reading.known_headers(directory)
        sentences = {header.path: header.description or header.name for header in headers}
        saved: dict[str, Saved] = {}
        for job, result in results.items():
            paths = [*result.get("saved", ()), *result.get("updated", ())]
            present = [sentences[path] for path in paths if path in sentences]
            saved[job] = (result["change"], present)
        return saved


def saved_line(saved: Sequence[Saved]) -> str:
    """Return the line for some changes, each with at least one sentence; "" for no change."""
    parts = []
    for change, sentences in saved[:_SHOWN]:
        shown = (one_line(sentence, _SENTENCE_CHARACTERS) for sentence in sentences[:_SHOWN])
        named = ", ".join(f'"{printable(sentence, _SENTENCE_CHARACTERS)}"' for sentence in shown)
        more = f" and {len(sentences) - _SHOWN} more" if len(sentences) > _SHOWN else ""
        parts.append(f"{named}{more} (undo: memctl undo {change})")
    if len(saved) > _SHOWN:
        parts.append("more in memctl log")
    return f"memd: saved {'; '.join(parts)}" if parts else ""
