"""Apply a model's edits to the text of a session's notes. Pure.

Rules of this file
- Only ``Edit`` is allowed, and only with exactly the notes' path. Other calls are refused with a
  sentence and counted.
- No file is changed: the text stays in memory until the run has finished and was checked.
"""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from memd.agent.service import ToolResult, refusals, tools
from memd.text import invisible

EDIT = "Edit"
_ONE_FILE = "only the notes are edited, by exactly their path"


class NotesBench:
    """Executes the edits of a model's run on the notes at ``path``; ``text`` is the edited text."""

    def __init__(self, path: str, text: str) -> None:
        self._path = path
        self._original = text
        self.text = text

    @property
    def touched(self) -> tuple[str, ...]:
        """The notes' path if their text has changed, else nothing."""
        return (self._path,) if self.text != self._original else ()

    def call(
        self, name: str, arguments: Mapping[str, Any], _now: float, _over: Callable[[], bool]
    ) -> ToolResult:
        """Apply one edit and return its result, or the sentence why it is refused."""
        try:
            self.text = self._edited(name, arguments)
        except refusals.ToolError as error:
            return ToolResult(error.sentence, error.fault)
        return ToolResult("The notes are changed. That holds when this run ends well.")

    def _edited(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Return the text after a call of the tool ``name``. Raises ToolError."""
        edit = tools.parse(name, arguments) if name == EDIT else None
        if not isinstance(edit, tools.Edit):
            raise refusals.NoSuchToolError(name)
        if edit.file_path != self._path:
            raise refusals.ChangeRefusedError(edit.file_path, _ONE_FILE)
        # Half of a surrogate pair cannot be written; invisible characters are spelled out.
        new = invisible.spelled_out(edit.new_string.encode("utf-8", "replace").decode())
        return replace(edit, new_string=new).applied(self.text)
