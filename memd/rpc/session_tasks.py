"""The tasks of one connection, which end together.

Each task has a cancel scope of its own: a task that is cancelled with its task group leaves a
reference cycle of its exception and frames, which the garbage collector frees late.
"""

from collections.abc import Awaitable, Callable

import anyio


class SessionTasks:
    """The task group of one connection. Enter ``group`` before a task is started."""

    def __init__(self) -> None:
        self.group = anyio.create_task_group()
        self.cancelled = False
        self._scopes: set[anyio.CancelScope] = set()  # of the tasks that have not ended

    def start(self, task: Callable[[], Awaitable[None]]) -> None:
        """Start a task."""
        self.group.start_soon(self._run_in_scope, self._new_scope(), task)

    async def run(self, task: Callable[[], Awaitable[None]]) -> None:
        """Run a task in the caller's own task, and return when it has ended or was cancelled."""
        await self._run_in_scope(self._new_scope(), task)

    def cancel(self) -> None:
        """Cancel all tasks; those that are started later are cancelled too."""
        self.cancelled = True
        for scope in self._scopes:
            scope.cancel()

    def _new_scope(self) -> anyio.CancelScope:
        """Return the cancel scope of a new task."""
        scope = anyio.CancelScope()
        self._scopes.add(scope)
        if self.cancelled:
            scope.cancel()
        return scope

    async def _run_in_scope(
        self, scope: anyio.CancelScope, task: Callable[[], Awaitable[None]]
    ) -> None:
        """Run a task in its cancel scope, and forget the scope afterwards."""
        try:
            with scope:
                await task()
        finally:
            self._scopes.discard(scope)
