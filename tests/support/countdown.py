"""A countdown to the call that fails."""

import errno
import os
from collections.abc import Collection


class Countdown:
    """Counts calls and lets one of them fail.

    It is the ``fail_at``-th call, from 1; with 0 none fails. ``code`` is the error's errno. With
    ``ever`` all calls after it fail too, with ``only`` just calls with these names.
    """

    def __init__(
        self,
        fail_at: int = 0,
        code: int = errno.EIO,
        *,
        ever: bool = False,
        only: Collection[str] = (),
    ) -> None:
        self.fail_at = fail_at
        self.code = code
        self.ever = ever
        self.only = only
        self.names: list[str] = []  # of the calls so far

    def step(self, name: str) -> None:
        """Count one call. Raises OSError if this call is to fail."""
        self.names.append(name)
        if not self.fail_at or (self.only and name not in self.only):
            return
        count = len(self.names)
        if count == self.fail_at or (self.ever and count > self.fail_at):
            raise OSError(self.code, os.strerror(self.code), name)

    @property
    def reached(self) -> bool:
        """Whether the call that was to fail has been made."""
        return 0 < self.fail_at <= len(self.names)
