"""Build a run with a single request, which the model answers with a list of operations. Pure.

It is for models that call no tools, and for conversations that cost much to repeat. The caller
writes the request; this module adds the form of the answer. ``service.run`` runs the task as any
other; refused operations bring one more request.
"""

from collections.abc import Sequence

from memd.agent.step import OPERATION, Budget
from memd.agent.task import Task
from memd.base import prose

_ROUNDS = 2  # the request, and one more after refused operations
_OPERATIONS = 64  # of one answer
_REPLY_TOKENS = 8_000  # of one reply
_TOTAL_TOKENS = 400_000  # of the run, read and written
_REQUEST_SECONDS = 120.0
_PACKAGE = "memd.agent"


def task(
    kind: str,
    model: str,
    request: str,
    *,
    directory: str,
    shown: Sequence[tuple[str, str]] = (),
    seconds: float = _ROUNDS * _REQUEST_SECONDS + 10,
) -> Task:
    """Return the task of a run with one request, which the model answers with operations.

    ``request`` is the text of what is to be decided. ``shown`` has the paths and whole texts of
    memories, which the model may change at once.
    """
    texts = "\n\n".join(
        f'<memory path="{path}">\n{prose.inert(text)}\n</memory>' for path, text in shown
    )
    template = prose.template("operations", _PACKAGE)
    flags = ("shown",) if shown else ()
    form = prose.fill(template, flags, {"memories": texts})
    return Task(
        kind=kind,
        model=model,
        messages=({"role": "user", "content": f"{request}\n\n{form}"},),
        tools=(),
        runs=frozenset({OPERATION}),
        budget=Budget(
            turns=_ROUNDS,
            reply_tokens=_REPLY_TOKENS,
            output_tokens=_ROUNDS * _REPLY_TOKENS,
            total_tokens=_TOTAL_TOKENS,
            calls_per_turn=_OPERATIONS,
            malformed=_ROUNDS * _OPERATIONS,
            ends_after_writes=True,
            runs_last=True,
        ),
        seconds=seconds,
        ask_seconds=_REQUEST_SECONDS,
        retries=0,
        project=directory,
        shown=frozenset(path for path, _ in shown),
    )
