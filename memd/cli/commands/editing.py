"""edit: open a memory in the user's editor and write it back if nobody changed it meanwhile.

``edited_text`` does the same for any other text, ``run_editor`` opens a file where it lies.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from memd.base.errors import MemdError, Refused
from memd.cli.commands.memories import scope_of, write_sentence
from memd.cli.invocation import Invocation

_NEEDS_TERMINAL = "needs a terminal"
_EDITOR_FAILED = "the editor {} {}; nothing was written"
_EDITOR_HINT = "set VISUAL or EDITOR to an editor that waits until the file is closed"


def edit(invocation: Invocation) -> None:
    """Open one memory in an editor and write it back if it was saved; then it is the person's."""
    path = invocation.options.path
    read = invocation.ask("memory.read", path=path)
    written = {"path": path, "hash": read["hash"], "change": None, "status": "unchanged"}
    with edited_text(invocation, os.path.basename(path), read["content"]) as edited:
        if edited.saved:
            options = invocation.options
            written = invocation.ask(
                "memory.write",
                path=path,
                content=edited.text,
                scope=options.scope if options.agent else scope_of(path),
                base_hash=read["hash"],
                request_id=os.urandom(16).hex(),
            )
    invocation.screen.answer(written, write_sentence(invocation, written))


class EditedText(NamedTuple):
    """A text behind an editor; ``saved`` says whether it was saved there, with changes or not."""

    text: str
    saved: bool


@contextmanager
def edited_text(invocation: Invocation, name: str, text: str) -> Iterator[EditedText]:
    """Open a text in an editor and yield the edited text.

    If the block raises MemdError, the edited text is saved in the state directory. Raises
    Refused.
    """
    import tempfile  # noqa: PLC0415 - a review mostly opens no editor

    with tempfile.TemporaryDirectory(prefix="memctl-") as folder:
        draft = os.path.join(folder, name)
        original = text.encode()
        with open(draft, "wb") as file:
            file.write(original)
        os.utime(draft, (0, 0))  # a save gives it another time
        try:
            run_editor(invocation, draft)
            yield EditedText(invocation.read(draft), os.stat(draft).st_mtime > 0)
        except (MemdError, KeyboardInterrupt):
            # The temporary folder is deleted, so the person's text is saved elsewhere first.
            _save_draft(invocation, draft, original)
            raise


def run_editor(invocation: Invocation, draft: str) -> None:
    """Run the user's editor on a draft and wait for it. Raise Refused."""
    environ = invocation.surroundings.environ
    command = environ.get("VISUAL") or environ.get("EDITOR") or "vi"
    # A person's own editor may be a program that needs no terminal; vi does.
    if command == "vi" and not invocation.surroundings.stdin.isatty():
        raise Refused(_EDITOR_FAILED.format(command, _NEEDS_TERMINAL), hint=_EDITOR_HINT)
    import shlex  # noqa: PLC0415 - as in edited_text
    import subprocess  # noqa: PLC0415

    try:
        status = subprocess.run([*shlex.split(command), draft], env=environ, check=False).returncode
    except (OSError, ValueError) as error:
        cause = f"could not be started: {error}"
        raise Refused(_EDITOR_FAILED.format(command, cause), hint=_EDITOR_HINT) from error
    if status:
        cause = f"ended with status {status}"
        raise Refused(_EDITOR_FAILED.format(command, cause), hint=_EDITOR_HINT)


def _save_draft(invocation: Invocation, draft: str, original: bytes) -> None:
    """Copy a draft into the state directory and print its path, unless it has the original text."""
    try:
        with open(draft, "rb") as file:
            text = file.read()
    except OSError:
        return
    if text == original:
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
