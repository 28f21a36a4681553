"""Where a dream is, as whoever watches is told it. Pure."""

from typing import Any

from memd.agent.service import Progress

STARTING, UPDATING, JUDGING = "starting", "updating", "judging"


class Telling:
    """Passes on what an agent tells, in the phases of a dream.

    A dream is ``starting`` until its first write and ``updating`` from then on. The turns of a
    second run go on counting where those of the first ended.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._turns = 0
        self._calls = 0
        self._tokens = 0

    def __call__(self, phase: str, **facts: Any) -> None:  # noqa: ARG002 - the agent's own phases
        """Tell what an agent tells."""
        facts["turn"] += self._turns
        facts["tool_calls"] += self._calls
        facts["tokens"] += self._tokens
        self._progress(UPDATING if facts["touched"] else STARTING, **facts)

    def ran(self, *, turns: int, calls: int, tokens: int) -> None:
        """Count a run that is over, for the next one."""
        self._turns += turns
        self._calls += calls
        self._tokens += tokens

    def judging(self) -> None:
        """Tell that the judge is at it."""
        self._progress(JUDGING)
