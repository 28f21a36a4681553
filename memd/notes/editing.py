"""The one text that a model may edit while it updates a session's notes. Pure.

Rules of this file
- Only ``Edit`` is run, and only on exactly the notes' path; whatever else a model calls is refused
  in words and counted.
- No file is touched: the text stays here until the run has ended well and was checked.
"""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from memd.agent.service import ToolResult, refusals, tools
from memd.text import invisible

EDIT = "Edit"
_ONE_FILE = "only the notes are edited, by exactly their path"


class NotesBench:
    """The notes at a path as a run works on them; ``text`` is what they say by now."""

    def __init__(self, path: str, text: str) -> None:
        self._path = path
        self._before = text
        self.text = text

    @property
    def touched(self) -> tuple[str, ...]:
        """The notes' path where they say something else by now."""
        return (self._path,) if self.text != self._before else ()

    def call(
        self, name: str, given: Mapping[str, Any], _now: float, _over: Callable[[], bool]
    ) -> ToolResult:
        """Apply one edit, or say why it is refused."""
        try:
            self.text = self._edited(name, given)
        except refusals.ToolError as error:
            return ToolResult(error.sentence, error.fault)
        return ToolResult("The notes are changed. That holds when this run ends well.")

    def _edited(self, name: str, given: Mapping[str, Any]) -> str:
        edit = tools.parse(name, given) if name == EDIT else None
        if not isinstance(edit, tools.Edit):
            raise refusals.NoSuchToolError(name)
        if edit.file_path != self._path:
            raise refusals.ChangeRefusedError(edit.file_path, _ONE_FILE)
        # Half a character cannot be written, and what shows nothing has no place in notes.
        new = invisible.spelled_out(edit.new_string.encode("utf-8", "replace").decode())
        return replace(edit, new_string=new).applied(self.text)
