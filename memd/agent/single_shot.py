"""A run with one request: what to do and all that is needed for it, answered with operations. Pure.

For models that call no tools, and where a conversation is dear to repeat. The caller says what is
to be decided and shows it; this adds the form of the answer. ``service.run`` runs the task as any
other; a refused operation brings one more request.
"""

from collections.abc import Sequence

from memd.agent.step import OPERATION, Budget
from memd.agent.task import Task
from memd.core import prose

_ROUNDS = 2  # the answer, and once what was wrong with it
_OPERATIONS = 64
_REPLY_TOKENS = 8_000
_TOTAL_TOKENS = 400_000
_SECONDS = 120.0
_PACKAGE = "memd.agent"


def task(
    kind: str,
    model: str,
    request: str,
    *,
    directory: str,
    shown: Sequence[tuple[str, str]] = (),
    seconds: float = _ROUNDS * _SECONDS + 10,
) -> Task:
    """Return a run of one request.

    ``request`` says what is to be decided, and shows it; ``shown`` are memories with their whole
    text, which may be changed at once.
    """
    texts = "\n\n".join(
        f'<memory path="{path}">\n{prose.inert(text)}\n</memory>' for path, text in shown
    )
    form = prose.fill(
        prose.template("operations", _PACKAGE), ("shown",) if shown else (), {"memories": texts}
    )
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
        ask_seconds=_SECONDS,
        retries=0,
        project=directory,
        shown=frozenset(path for path, _ in shown),
    )
