"""Apply changes that a model gives as one list of operations instead of tool calls. Pure.

Rules of this file
- An answer is read leniently (a fence, prose or thoughts around it, one object instead of a list)
  and its operations strictly, by a schema. An answer that is cut off is no answer.
- Each operation becomes a tool call of the run, with the same workspace, checks and budget. A
  refused one does not affect the others, and its reason is sent back to the model.
- A memory is changed only after its whole text was shown: an update of any other is answered with
  that text.
"""

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec.structs import replace

from memd.agent.refusals import EditFailedError, InputError, NotShownError, ToolError
from memd.agent.step import DENIED, OPERATION, ToolResult
from memd.agent.tools import NO_INPUT
from memd.agent.workspace import Workspace
from memd.base.errors import MemdError
from memd.base.names import INDEX, SUFFIX
from memd.base.text import decode, iso_time, one_line, said_line
from memd.base.values import MemoryType
from memd.model.port import Block, Reply, ToolCall
from memd.store import memory

_UNREADABLE = "unreadable"  # the member of a call that stands for an answer without a list
_NO_LIST = "the answer holds no whole JSON list of operations"
_NEEDS_ALL_FIELDS = "a memory that is created needs type, name, description and body"
_NEEDS_PATH = "it names no path"
_NO_INDEX = "the index is written by memd: name a memory"
_NEEDS_REASON = "what is deleted needs a reason, the person's words quoted in said"
_EXISTS_ALREADY = "it is there already. To change it, send an update"
_DOES_NOT_EXIST = "there is no such memory"
_NOT_SHOWN = "its text was not shown to you. To change it, send it again"
_MEND_REQUEST = """Not all of it can stand:
{problems}

Answer once more with a JSON list: the operations named here, mended, and no others. `[]` leaves \
them out; what is not named here stands."""
_OF_DREAMS = ("merge", "supersede", "expire", "keep")
_OPENING = re.compile(r"[\[{]")  # of a list or an object
_LIST_OPENING = re.compile(r"\[(?=\s*[{\]])")  # of a list of objects, or an empty one
_OPENINGS_TRIED = 64
_REASON_CHARACTERS = 450
_Text = Annotated[str, msgspec.Meta(max_length=1_000_000)]


class Operation(msgspec.Struct, frozen=True):
    """One change; ``said`` has quotations that prove it, ``reason`` is given for a deletion.

    The last four are those of a dream, with the memories in ``paths``: the first of ``merge`` takes
    the others in, the first of ``supersede`` is the old one, ``expire`` has one, and ``keep`` has
    the log and the memory.
    """

    op: Literal["create", "update", "delete", "merge", "supersede", "expire", "keep"]
    paths: tuple[_Text, ...] = ()
    path: _Text = ""
    type: Literal["", "user", "feedback", "project", "reference"] = ""
    name: _Text = ""
    description: _Text = ""
    body: _Text = ""
    said: _Text | tuple[_Text, ...] = ""
    reason: _Text = ""

    @property
    def quotations(self) -> tuple[str, ...]:
        """The quotations that are not empty, without the quotation marks around them."""
        texts = (self.said,) if isinstance(self.said, str) else self.said
        quotations = (one_line(text.strip().strip('"“”'), 2_000) for text in texts)
        return tuple(quotation for quotation in quotations if quotation)


class OperationTools:
    """The one tool of a single shot: it applies an operation to a workspace.

    ``shown`` has the paths of the memories whose whole text is in the request.
    """

    def __init__(self, workspace: Workspace, shown: Collection[str] = ()) -> None:
        self._workspace = workspace
        self._shown = set(shown)  # grows with each text that a refusal shows

    @property
    def touched(self) -> tuple[str, ...]:
        """The names of what the run has changed, in the order of the first change."""
        return self._workspace.touched

    def call(
        self, name: str, given: Mapping[str, Any], now: float, over: Callable[[], bool]
    ) -> ToolResult:
        """Apply one operation; ``now`` is seconds since 1970, ``over`` whether its time is up."""
        try:
            operation = _operation(name, given)
            if operation.op in _OF_DREAMS:
                return self._workspace.call(*_tool_call(operation), now, over)
            path = operation.path or f"{memory.slug(operation.name)}{SUFFIX}"
            text = self._text(operation, path, now)
        except ToolError as error:
            return ToolResult(error.sentence, error.fault)
        except MemdError as error:
            return ToolResult(f"{path}: {error.sentence}", DENIED)
        return self._workspace.call("Write", {"file_path": path, "content": text}, now, over)

    def _text(self, operation: Operation, path: str, now: float) -> str:
        """Return the text to write to a memory: its new content, or ``removed: REASON``.

        Raises ToolError and what documents raise.
        """
        before = self._workspace.content(path)
        if before is None:
            return _new_text(operation, path, now)
        if operation.op == "delete":
            proof = " ".join(f'"{text}"' for text in operation.quotations)
            reason = one_line(f"{operation.reason} {proof}".strip(), _REASON_CHARACTERS)
            if not reason:
                raise EditFailedError(path, _NEEDS_REASON)
            return f"removed: {reason}"
        if operation.op == "create" or path not in self._shown:
            # The model gets the memory's text and may change it from now on.
            self._shown.add(path)
            why = _EXISTS_ALREADY if operation.op == "create" else _NOT_SHOWN
            text = decode(before)
            self._workspace.show(text, (path,))
            raise NotShownError(path, why, text)
        return decode(_updated(operation, before))


def _tool_call(operation: Operation) -> tuple[str, dict[str, Any]]:
    """Return the tool and the input that an operation of a dream stands for."""
    paths = [path for path in (*operation.paths, operation.path) if path]
    first, second = (*paths, "", "")[:2]
    said, reason = operation.quotations, operation.reason
    if operation.op == "merge":
        return "Merge", {"into": first, "from": paths[1:]}
    if operation.op == "supersede":
        return "Supersede", {"old": first, "by": second, "still_true": said, "reason": reason}
    if operation.op == "expire":
        return "Expire", {"path": first, "reason": reason}
    fact = said[0] if said else operation.body
    given = {"log": first, "into": second, "fact": fact, "description": operation.description}
    return "Keep", given | ({"type": operation.type} if operation.type else {})


def _new_text(operation: Operation, path: str, now: float) -> str:
    """Return the text of a new memory. Raises EditFailedError if the operation does not make one.

    ``now`` is seconds since 1970.
    """
    if operation.op != "create":
        raise EditFailedError(path, _DOES_NOT_EXIST)
    fields = (operation.type, operation.name, operation.description, operation.body)
    if not all(fields):
        raise EditFailedError(path, _NEEDS_ALL_FIELDS)
    name = memory.slug(operation.name, path.rsplit("/", 1)[-1].removesuffix(SUFFIX))
    head = (name, operation.description, MemoryType(operation.type))
    content = memory.new(*head, _body(operation), session="", modified=iso_time(now))
    return decode(content)


def _operation(name: str, given: Mapping[str, Any]) -> Operation:
    """Return the operation of a tool call's input. Raises InputError."""
    if name != OPERATION or _UNREADABLE in given:
        raise InputError(OPERATION, _NO_LIST)
    members = {key: value for key, value in given.items() if value is not None}
    try:
        operation = msgspec.convert(members, type=Operation, strict=False)
    except NO_INPUT as error:
        raise InputError(OPERATION, str(error)) from error
    # The path of a new memory can be made of its name.
    has_name = operation.op == "create" and operation.name.strip()
    if not (operation.path or operation.paths or has_name):
        raise InputError(OPERATION, _NEEDS_PATH)
    if operation.path.casefold() == INDEX.casefold():
        raise InputError(OPERATION, _NO_INDEX)
    return operation


def as_calls(reply: Reply) -> Reply:
    """Return a reply of text with a tool call for each of its operations.

    A text without a whole list becomes one call, which is answered with an error.
    """
    operations = read(reply.text)
    items: Sequence[Mapping[str, Any]] = (
        ({_UNREADABLE: True},) if operations is None else operations
    )
    # The id is what the model is told if the operation is refused.
    calls = [ToolCall(f"operation {n}", OPERATION, item) for n, item in enumerate(items, 1)]
    stop = "tool_use" if calls and reply.stop == "end_turn" else reply.stop
    return replace(reply, calls=tuple(calls), stop=stop)


def read(text: str) -> list[dict[str, Any]] | None:
    """Return the last list of operations in an answer, ``None`` if it has no whole list.

    An empty list never replaces an earlier one. Text before the last list is the model's thoughts.
    """
    last: list[dict[str, Any]] | None = None
    for value in _values(text):
        items = _operations_in(value)
        if items or (items is not None and last is None):
            last = items
    return last


def _operations_in(value: Any) -> list[dict[str, Any]] | None:
    """Return the operations in a JSON value, ``None`` if it is no list, operation or wrapper."""
    if isinstance(value, dict):
        wrapped = value.get("operations")
        if isinstance(wrapped, list):
            value = wrapped
        elif "op" in value:
            value = [value]
    is_valid = isinstance(value, list) and all(isinstance(item, dict) for item in value)
    return value if is_valid else None


def plain(messages: Sequence[Block]) -> tuple[Block, ...]:
    """Return a run's messages as plain text; of the tools' results only the refusals are kept."""
    return tuple({**message, "content": _plain(message["content"])} for message in messages)


def _plain(content: str | Sequence[Block]) -> str:
    """Return a message's text, followed by the results of refused operations if there are some."""
    if isinstance(content, str):
        return content
    texts = [block["text"] for block in content if block.get("type") == "text"]
    problems = [
        f"- {block['tool_use_id']}: {block['content']}" for block in content if "is_error" in block
    ]
    request = (_MEND_REQUEST.format(problems="\n".join(problems)),) if problems else ()
    return "\n\n".join((*texts, *request))


def _values(text: str) -> Iterator[Any]:
    """Yield each outermost JSON list or object in a text."""
    decoder, position, openings = json.JSONDecoder(), 0, _OPENING
    for _ in range(_OPENINGS_TRIED):
        opening = openings.search(text, position)
        if opening is None:
            return
        try:
            value, position = decoder.raw_decode(text, opening.start())
        except (ValueError, RecursionError):
            position = opening.start() + 1
            if _LIST_OPENING.match(text, opening.start()):
                openings = _LIST_OPENING  # the items of a list that is cut off are no answer
        else:
            yield value


def _updated(operation: Operation, before: bytes) -> bytes:
    """Return a memory with the fields and the body that an operation has; others stay."""
    fields = {
        "name": memory.slug(operation.name) if operation.name else "",
        "description": operation.description,
        "metadata.type": operation.type,
    }
    new_fields = {key: one_line(value, 10_000) for key, value in fields.items() if value}
    content = memory.with_fields(before, new_fields) if new_fields else before
    body = _body(operation)
    return memory.with_body(content, body) if body else content


def _body(operation: Operation) -> str:
    """Return an operation's body followed by its quotations, or "" if it has no body."""
    body = operation.body.strip()
    if not body:
        return ""
    lines = [said_line(text) for text in operation.quotations if text not in body]
    if lines:
        body += "\n\n" + "\n".join(lines)
    return f"{body}\n"
