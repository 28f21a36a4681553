"""The hook's files in the user's data directory, which stay when memd is upgraded or removed.

A client's settings name ``hook.py`` in the user's data directory and never a path of an
installation, since Python ends with 2 for a missing script and 2 blocks the client's prompt.

Rules of this file
- ``hook_body.py`` is a copy of ``memd/cli/hook.py``, ``hook.py`` the few lines that run it, and
  ``interpreter`` a link to the Python that has memd. Each is replaced in one step, so a hook that
  runs meanwhile sees the old or the new one.
- ``python`` is the program that clients run ``hook.py`` with: the native hook, compiled from the
  copy ``hook.c``, or where that cannot be done the same link as ``interpreter``.
- Only the system's own compiler is run, with a fixed environment: PATH may name a project's.
- ``memctl setup`` writes them. A daemon that starts writes them again where they are of another
  version, but only if a set-up had made them.
- The file ``orphaned`` is made by the hook once it has said how to remove it; writing the files
  removes it.
"""

import os
import shutil
import sys
from contextlib import suppress

from memd.base.errors import Refused
from memd.base.places import Places

_CLI = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "cli")
SOURCE = f"{_CLI}/hook.py"
NATIVE_SOURCE = f"{_CLI}/hook.c"
# Names in the data directory and what each is copied from. ``hook.py`` runs the body, so the body
# is written first.
FILES = {
    "hook_body.py": SOURCE,
    "hook.py": f"{_CLI}/hook_stub.py",
    "hook.c": NATIVE_SOURCE,
}
_COMPILED_FOLDER = "__pycache__"
_PROGRAM = "python"
_INTERPRETER = "interpreter"
_ORPHANED_FILE = "orphaned"
_COMPILER = "/usr/bin/cc"
_MACOS_TOOLS = "/Library/Developer/CommandLineTools/usr/bin/cc"  # without it cc opens a dialog
_COMPILE_SECONDS = 5.0


def hook_path(places: Places) -> str:
    """Return the path of the hook that clients' settings have."""
    return f"{places.data_dir}/hook.py"


def is_current(places: Places, python: str = sys.executable) -> bool:
    """Return whether hook and link are those of this memd."""
    folder = places.data_dir
    if os.path.lexists(f"{folder}/{_ORPHANED_FILE}"):  # only ``write`` removes it
        return False
    try:
        link = f"{folder}/{_INTERPRETER}"
        # Interpreters with different names in the same folder are one installation.
        same_folder = os.path.dirname(os.readlink(link)) == os.path.dirname(python)
        if not (same_folder and os.path.exists(link) and os.path.isfile(f"{folder}/{_PROGRAM}")):
            return False
        return all(
            _read_bytes(f"{folder}/{name}") == _read_bytes(source) for name, source in FILES.items()
        )
    except OSError:  # a file is missing
        return False


def lost_interpreter(places: Places) -> str:
    """Return where the Python of the hook was, "" if it is there or no set-up made the link."""
    link = f"{places.data_dir}/{_INTERPRETER}"
    return os.readlink(link) if os.path.islink(link) and not os.path.exists(link) else ""


def write(places: Places, python: str = sys.executable) -> None:
    """Write the hook's files and links, and compile the native hook. Raises Refused and OSError."""
    _write_files(places, python)
    make_native(places)


def make_native(places: Places) -> None:
    """Put the native hook in the place of the link ``python``, where a compiler is. Raises OSError.

    It takes a moment. Where there is no set-up, or the native hook already, it does nothing.
    """
    program = f"{places.data_dir}/{_PROGRAM}"
    if not os.path.islink(program):
        return
    draft = f"{places.data_dir}/.draft-{os.getpid()}"
    with suppress(FileNotFoundError):
        os.unlink(draft)  # left by a process with the same number: a compiler might follow a link
    if _compile(f"{places.data_dir}/hook.c", draft):
        os.rename(draft, program)
    else:
        with suppress(FileNotFoundError):
            os.unlink(draft)


def _write_files(places: Places, python: str) -> None:
    """Write the hook's files, and both links to the interpreter. Raises Refused and OSError."""
    if not os.path.isabs(python):
        raise Refused(
            "this Python does not know where it lies",
            exit_status=78,
            hint="call memctl by its full path",
        )
    folder = places.data_dir
    os.makedirs(folder, mode=0o700, exist_ok=True)
    draft = f"{folder}/.draft-{os.getpid()}"
    with suppress(FileNotFoundError):
        os.unlink(draft)  # left by a process with the same number that died
    interpreter = _without_version(python)
    try:
        os.symlink(interpreter, draft)
        os.rename(draft, f"{folder}/{_INTERPRETER}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        for name, source in FILES.items():
            with open(os.open(draft, flags, 0o600), "wb") as file:
                file.write(_read_bytes(source))
                file.flush()
                os.fsync(file.fileno())
            os.rename(draft, f"{folder}/{name}")
        os.symlink(interpreter, draft)
        os.rename(draft, f"{folder}/{_PROGRAM}")
    except BaseException:
        with suppress(OSError):
            os.unlink(draft)
        raise
    with suppress(FileNotFoundError):
        os.unlink(f"{folder}/{_ORPHANED_FILE}")


def refresh(places: Places) -> None:
    """Update the hook's files to this version, if a set-up made them; ``make_native`` is due then.

    Raises Refused and OSError.
    """
    if os.path.lexists(hook_path(places)) and not is_current(places):
        _write_files(places, sys.executable)


def remove(places: Places) -> None:
    """Remove the hook's files and links, and the folder if it is empty then. Raises OSError."""
    for name in (*FILES, _PROGRAM, _INTERPRETER, _ORPHANED_FILE):
        with suppress(FileNotFoundError):
            os.unlink(f"{places.data_dir}/{name}")
    with suppress(FileNotFoundError):
        shutil.rmtree(f"{places.data_dir}/{_COMPILED_FOLDER}")
    with suppress(OSError):
        os.rmdir(places.data_dir)


def _compile(source: str, program: str) -> bool:
    """Compile the native hook; return whether it was, and runs here."""
    import subprocess  # noqa: PLC0415 - most set-ups and starts compile nothing

    if sys.platform == "darwin" and not os.path.exists(_MACOS_TOOLS):
        return False
    command = [_COMPILER, "-std=c99", "-O2", "-o", program, source]
    # Called with other arguments than a hook's it runs the interpreter with them.
    trial = [program, "-I", "-S", "-c", ""]
    try:
        for words in (command, trial):
            subprocess.run(
                words,
                env={"PATH": "/usr/bin:/bin"},
                cwd="/",
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_COMPILE_SECONDS,
                check=True,
            )
        os.chmod(program, 0o700)
        with open(program, "rb") as file:
            os.fsync(file.fileno())
    except (OSError, subprocess.SubprocessError):
        return False
    return True


def _without_version(python: str) -> str:
    """Return the path of an interpreter under a name without its minor version.

    The path is returned unchanged if no ``python`` or ``python3`` beside it is the same program.
    """
    for name in ("python", "python3"):
        other = f"{os.path.dirname(python)}/{name}"
        if os.path.exists(other) and os.path.samefile(other, python):
            return other
    return python


def _read_bytes(path: str) -> bytes:
    """Return the bytes of a file. Raises OSError."""
    with open(path, "rb") as file:
        return file.read()
