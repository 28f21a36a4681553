"""debug bundle: write an archive for bug reports that holds no text of the person."""

import gzip
import io
import json
import os
import platform
import re
import sys
import tarfile
import time
import tomllib
from collections.abc import Callable
from contextlib import suppress

from memd import __version__
from memd.cli import open_metrics, output, service_unit
from memd.cli.commands import service, setup
from memd.cli.invocation import Invocation
from memd.cli.redaction import Redactor
from memd.cli.setup.plan import delivers, state
from memd.core import settings
from memd.core.errors import MemdError
from memd.core.options import Layer, shareable

_LOG_LINES, _LOG_BYTES = 500, 512 * 1024  # of the log's end, whichever is less
_KEY_BYTES = 32
_FOLDER = "memd-debug"
_SENTENCES = {
    "versions.json": "memd, Python, and the kind of system",
    "settings.json": "each option: numbers, switches and fixed names; of others whether it is set",
    "service.json": "which files of the service are installed",
    "clients.json": "which clients are here, and whether they are connected",
    "doctor.json": "the self-checks by name and state",
    "status.json": "the daemon's status, every name and path as a hash",
    "metrics.txt": "latencies, errors, sizes and counts",
    "debug.json": "rows of each table, sizes and counts",
    "log.jsonl": "the last lines of the log: events, numbers, places in memd's own program",
}
_PROMISE = (
    "No memory, prompt, path, name, key or address is in it: texts are short hashes under a key "
    "that stays here."
)


class BundleUnwritableError(MemdError):
    """The archive cannot be written; an existing file is never replaced."""

    hint = "name another file with -o"

    def __init__(self, path: str, cause: str) -> None:
        super().__init__(f"{path} cannot be written: {cause}", path=path, cause=cause)


def bundle(invocation: Invocation) -> None:
    """Write the archive and print what is in it and which parts are missing."""
    default_name = time.strftime(f"{_FOLDER}-%Y%m%d-%H%M%S.tar.gz")
    path = os.path.abspath(invocation.options.output or default_name)
    screen, parts, missing = invocation.screen, dict[str, str](), list[str]()
    redactor = Redactor(_hash_key(invocation))
    for name, make_part in _part_makers(invocation, redactor).items():
        try:
            parts[name] = make_part()
        except (MemdError, OSError, ValueError) as error:
            kind = error.kind if isinstance(error, MemdError) else type(error).__name__
            missing.append(f"{name}: {kind}")
    lines = [f"  {name:<14} {_SENTENCES[name]}" for name in parts]
    lines += [f"  missing: {each}" for each in missing]
    readme = "\n".join(["What helps to find a fault in memd.", "", *lines, "", _PROMISE, ""])
    size = _write_archive(path, {"README.txt": readme, **parts})
    head = f"{path} ({output.size(size)}, for your eyes alone) has:"
    hint = (
        f"Nothing was sent. Read it before you send it: tar -xzOf {os.path.basename(path)} | less"
    )
    descriptions = {name: _SENTENCES[name] for name in parts}
    answer = {"file": path, "bytes": size, "parts": descriptions, "missing": missing}
    screen.answer(answer, "\n".join([head, *lines, _PROMISE, hint]))


def _part_makers(invocation: Invocation, redactor: Redactor) -> dict[str, Callable[[], str]]:
    """Return a function for each part's text; those that ask the daemon fail if none runs."""

    def result_of(method: str) -> dict[str, object]:
        """Return the result of a method of the daemon that runs."""
        invocation.client(start=False)
        answer: dict[str, object] = invocation.call(method)
        return answer

    def metrics() -> str:
        """Return the metrics as OpenMetrics text."""
        families: list[dict[str, object]] = result_of("metrics")["families"]  # type: ignore[assignment]
        return open_metrics.text(families)

    return {
        "versions.json": lambda: _json(_versions()),
        "settings.json": lambda: _json(_settings(invocation)),
        "service.json": lambda: _json(_service(invocation)),
        "clients.json": lambda: _json(_clients(invocation)),
        "doctor.json": lambda: _json(_checks(result_of("doctor"))),
        "status.json": lambda: _json(redactor.value(result_of("status"))),
        "metrics.txt": metrics,
        "debug.json": lambda: _json(result_of("debug")),
        "log.jsonl": lambda: _log(invocation, redactor),
    }


def _versions() -> dict[str, str]:
    """Return the versions of memctl, Python and the operating system."""
    release = re.match(r"[\d.]*", platform.release())
    return {
        "memctl": __version__,
        "python": platform.python_version(),
        "system": sys.platform,
        "release": release[0] if release else "",
        "machine": platform.machine(),
    }


def _settings(invocation: Invocation) -> dict[str, object]:
    """Return the shareable form of the person's settings. Raises OSError and ValueError."""
    path, options = invocation.places.config, {}
    with suppress(FileNotFoundError), open(path, "rb") as file:
        options = tomllib.load(file)
    parsed_settings, problems = settings.parse([Layer("", options)])
    return {"problems": len(problems), **dict(shareable(parsed_settings))}


def _service(invocation: Invocation) -> dict[str, str]:
    """Return the supervisor's name and the state of each of the service's files."""
    unit = service.find(invocation)
    states = {os.path.basename(path): each for path, each in service_unit.states(unit).items()}
    return {"supervisor": unit.supervisor, **states}


def _clients(invocation: Invocation) -> dict[str, dict[str, object]]:
    """Return each client's set-up state and whether messages are delivered in it."""
    rows: dict[str, dict[str, object]] = {}
    for client in setup.clients(invocation):
        with suppress(MemdError):  # a file that cannot be read: doctor says so
            rows[client.name] = {"state": state(client), "messages": delivers(client)}
    return rows


def _checks(diagnosis: dict[str, object]) -> dict[str, str]:
    """Return the state of each check of ``doctor`` by name, without the texts."""
    checks: list[dict[str, str]] = diagnosis["checks"]  # type: ignore[assignment]
    return {check["name"]: check["state"] for check in checks}


def _log(invocation: Invocation, redactor: Redactor) -> str:
    """Return the last lines of the log, redacted. Raises OSError."""
    with open(invocation.places.log, "rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _LOG_BYTES))
        lines = file.read(_LOG_BYTES).decode(errors="replace").splitlines()[-_LOG_LINES:]
    return "".join(f"{json.dumps(redactor.log_line(line))}\n" for line in lines)


def _hash_key(invocation: Invocation) -> bytes:
    """Return the key of the hashes from the state directory, or a new one if that fails."""
    # With O_EXCL only one of several bundles at once creates the key; the others read it.
    path, new_key = f"{invocation.places.state_dir}/debug-key", os.urandom(_KEY_BYTES)
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW
    with suppress(OSError), os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        file.write(new_key)
    with suppress(OSError), open(path, "rb") as file:
        stored_key = file.read(_KEY_BYTES)
        # A shorter key is damaged or not written yet.
        return stored_key if len(stored_key) == _KEY_BYTES else new_key
    return new_key


def _write_archive(path: str, parts: dict[str, str]) -> int:
    """Write the archive and return its size in bytes. Raises BundleUnwritableError."""
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW
    packed, now = io.BytesIO(), int(time.time())
    with (
        gzip.GzipFile("", "wb", fileobj=packed, mtime=now) as stream,
        tarfile.open(fileobj=stream, mode="w") as archive,
    ):
        for name, text in parts.items():
            member = tarfile.TarInfo(f"{_FOLDER}/{name}")  # without a user's name
            content = text.encode()
            member.size, member.mtime, member.mode = len(content), now, 0o600
            archive.addfile(member, io.BytesIO(content))
    is_created = False  # an existing file of another is not removed below
    try:
        with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
            is_created = True
            file.write(packed.getvalue())
    except OSError as error:
        if is_created:  # on a full disk; a part of an archive is of no use
            with suppress(OSError):
                os.unlink(path)
        raise BundleUnwritableError(path, error.strerror or str(error)) from error
    return len(packed.getvalue())


def _json(value: object) -> str:
    """Return a value as JSON text."""
    return json.dumps(value, indent=1) + "\n"
