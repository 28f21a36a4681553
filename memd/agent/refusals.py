"""The errors that a tool reports to the model, one class per situation. Pure.

These never reach a client: each becomes the text of a tool's result, and its ``fault`` is counted.
"""

from typing import ClassVar

from memd.agent.step import DENIED, FAILED, MALFORMED
from memd.base.names import printable


class ToolError(Exception):
    """A tool call failed; the sentence is for the model."""

    fault: ClassVar[str] = FAILED

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence


class NotReachableError(ToolError):
    """A path is not one that may be read."""

    fault = DENIED

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{printable(path)} cannot be read: {why}.")


class PathMissingError(ToolError):
    """There is no such file or folder."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{printable(path)}: there is no such file or folder.")


class WrongKindError(ToolError):
    """A path is a folder where a file is needed, or the other way round."""

    def __init__(self, path: str, kind: str) -> None:
        super().__init__(f"{printable(path)} is {kind}.")


class CommandRefusedError(ToolError):
    """A command line is not one of the few that are interpreted here."""

    fault = DENIED

    def __init__(self, why: str) -> None:
        super().__init__(f"The command is refused: {why}.")


class NoSuchToolError(ToolError):
    """There is no tool of this name here."""

    fault = DENIED

    def __init__(self, name: str) -> None:
        super().__init__(f"The tool {printable(name)} cannot be used here.")


class InputError(ToolError):
    """The input of a tool does not fit its schema."""

    fault = MALFORMED

    def __init__(self, tool: str, why: str) -> None:
        super().__init__(f"The input of {tool} does not fit its schema: {why}.")


class LimitError(ToolError):
    """A call would use more bytes, files or time than one call may."""

    def __init__(self, what: str) -> None:
        super().__init__(f"Stopped here: {what}. Ask for less at once.")


class ChangeRefusedError(ToolError):
    """A memory may not be written as the model wants it."""

    fault = DENIED

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{printable(path)} was not written: {why}.")


class EditFailedError(ToolError):
    """An edit does not match exactly one place, or the file was not read before."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{printable(path)} was not changed: {why}.")


class NotShownError(ToolError):
    """The model has not seen the text of a memory that it changes; the sentence shows it."""

    def __init__(self, path: str, why: str, text: str) -> None:
        super().__init__(f"{printable(path)} was not changed: {why}. It says:\n{text}")
