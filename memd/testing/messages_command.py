"""``memd-testing-server``: the scripted Messages server as a process."""

import argparse
import json
import signal
import sys
from collections.abc import Callable, Sequence
from importlib.resources import files
from typing import Any

from memd.testing.messages import messages_server
from memd.testing.messages_request import ReceivedMessage
from memd.testing.messages_script import InvalidScriptError, ScriptFile, echo, read

_INVALID_SCRIPT_STATUS = 65
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def main(arguments: Sequence[str] | None = None, wait: Callable[[], object] | None = None) -> int:
    """Serve until a signal comes and return the exit status; ``wait`` stands in for the signal."""
    parsed = _parser().parse_args(arguments)
    if parsed.help:
        print(manual(), end="")
        return 0
    try:
        script_file = read(parsed.script) if parsed.script else ScriptFile(echo, {})
        options = dict(script_file.options)
        if parsed.requests:
            options["on_end"] = _print_request
        if wait is None:
            # Before any thread starts: each of them inherits that these signals are waited for.
            signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)
        with messages_server(script_file.script, port=parsed.port, **options) as server:
            _print_line({"url": server.url})
            (wait or _wait_for_signal)()
    except InvalidScriptError as error:
        print(f"memd-testing-server: {error}", file=sys.stderr)
        return _INVALID_SCRIPT_STATUS
    except OSError as error:
        print(f"memd-testing-server: {error}", file=sys.stderr)
        return 1
    return 0


def manual() -> str:
    """Return the text of ``--help``."""
    return files("memd.testing").joinpath("messages.txt").read_text(encoding="utf-8")


def _parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser("memd-testing-server", add_help=False)
    parser.add_argument("script", nargs="?")
    parser.add_argument("-h", "--help", action="store_true")
    parser.add_argument("-p", "--port", type=int, default=0)
    parser.add_argument("-r", "--requests", action="store_true")
    return parser


def _print_request(request: ReceivedMessage) -> None:
    """Print a request and how it ended as a line of JSON."""
    facts = {
        "request": request.number,
        "method": request.method,
        "path": request.path,
        "status": request.status,
        "ending": request.end_of,
        "usage": request.usage,
        "body": request.json,
    }
    _print_line(facts)


def _print_line(value: dict[str, Any]) -> None:
    """Print a value as a line of JSON."""
    print(json.dumps(value, ensure_ascii=False), flush=True)


def _wait_for_signal() -> None:
    """Wait for a signal that ends the process."""
    signal.sigwait(_STOP_SIGNALS)


if __name__ == "__main__":  # pragma: no cover - a process of its own; a test starts it
    sys.exit(main())
