"""edit: a memory in the user's own editor, written only against the text that was read."""

import os
import shlex
import subprocess
import tempfile

from memd.cli.commands.memories import wrote
from memd.cli.invocation import Invocation
from memd.core.errors import MemdError


class EditorFailedError(MemdError):
    """The editor could not be started, or ended with a failure."""

    hint = "set VISUAL or EDITOR to an editor that waits until the file is closed"

    def __init__(self, command: str, cause: str) -> None:
        super().__init__(f"the editor {command} {cause}; nothing was written", command=command)


def edit(invocation: Invocation) -> None:
    """Open one memory in an editor and write it back; a text that cannot be written is kept."""
    path = invocation.options.path
    read = invocation.ask("memory.read", path=path)
    with tempfile.TemporaryDirectory(prefix="memctl-") as folder:
        draft = os.path.join(folder, os.path.basename(path))
        before = read["content"].encode()
        with open(draft, "wb") as file:
            file.write(before)
        try:
            _run_editor(invocation, draft)
            text = invocation.read(draft)
            if text == read["content"]:
                unchanged = {"path": path, "hash": read["hash"], "change": None}
                unchanged["status"] = "unchanged"
                invocation.screen.answer(unchanged, wrote(unchanged))
                return
            written = invocation.ask(
                "memory.write",
                path=path,
                content=text,
                base_hash=read["hash"],
                request_id=os.urandom(16).hex(),
            )
        except (MemdError, KeyboardInterrupt):
            _save(invocation, draft, before)
            raise
    invocation.screen.answer(written, wrote(written))


def _run_editor(invocation: Invocation, draft: str) -> None:
    environ = invocation.around.environ
    command = environ.get("VISUAL") or environ.get("EDITOR") or "vi"
    try:
        status = subprocess.run([*shlex.split(command), draft], env=environ, check=False).returncode
    except (OSError, ValueError) as error:
        cause = f"could not be started: {error}"
        raise EditorFailedError(command, cause) from error
    if status:
        cause = f"ended with status {status}"
        raise EditorFailedError(command, cause)


def _save(invocation: Invocation, draft: str, before: bytes) -> None:
    """Copy a changed draft to where it lasts, and say where."""
    try:
        with open(draft, "rb") as file:
            text = file.read()
    except OSError:
        return
    if text == before:
        return
    folder = f"{invocation.places.state_dir}/kept"
    os.makedirs(folder, mode=0o700, exist_ok=True)
    number = 1
    while True:
        copy = f"{folder}/{number}-{os.path.basename(draft)}"
        try:
            descriptor = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            number += 1
            continue
        with open(descriptor, "wb") as file:
            file.write(text)
        invocation.screen.error(f"your text is kept in {copy}")
        return
