"""Write the log: structured, on stderr, without memory text, prompts or keys.

The only place that configures structlog. Lines are plain text on a terminal, JSON elsewhere. Every
text passes the secret scanner on its way out.
"""

import sys
import traceback
import uuid
from collections.abc import MutableMapping
from contextlib import suppress
from typing import Any, TextIO

from memd.store import secret
from memd.text.invisible import without_directions

if "rich" not in sys.modules:
    # structlog loads rich for its console where that happens to be installed: 3 MB and 40 ms.
    sys.modules["rich"] = None  # type: ignore[assignment]
    import structlog

    del sys.modules["rich"]
else:  # pragma: no cover - another program in this process uses it
    import structlog

_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}  # numbers of ``logging``


class Log:
    """The log's interface for other rooms: notes, warnings, and faults with an id."""

    def __init__(self, stream: TextIO = sys.stderr, level: str = "info") -> None:
        renderer: Any = (
            structlog.dev.ConsoleRenderer(colors=True)
            if stream.isatty()
            else structlog.processors.JSONRenderer(sort_keys=False)
        )
        self._logger = structlog.wrap_logger(
            _Printer(stream),
            processors=[
                structlog.processors.add_log_level,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
                _scrub,
                renderer,
            ],
            wrapper_class=structlog.make_filtering_bound_logger(_LEVELS.get(level, 20)),
        )

    def note(self, event: str, **facts: Any) -> None:
        """Write an event with its facts."""
        self._logger.info(event, **facts)

    def warning(self, event: str, **facts: Any) -> None:
        """Write an event that a person should look at."""
        self._logger.warning(event, **facts)

    def unexpected(self, error: BaseException, **facts: str) -> str:
        """Write a fault with its traceback; return the id that the client is given for it."""
        fault = uuid.uuid4().hex[:12]
        lines = traceback.format_exception(error)
        self._logger.error("fault", id=fault, **facts, traceback="".join(lines))
        return fault


class _Printer(structlog.PrintLogger):
    """Writes lines; on a full disk they are lost without an error."""

    def msg(self, message: str) -> None:
        """Write one line."""
        with suppress(OSError):
            super().msg(message)

    info = warning = error = msg


def _scrub(_logger: Any, _method: str, entry: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Remove credentials and direction characters from the texts of a log entry."""
    for key, value in entry.items():
        if isinstance(value, str) and key not in {"timestamp", "level"}:
            entry[key] = secret.scrub(without_directions(value))
    return entry
