"""What tests of a model that is a program share: the stub, and who is left of it."""

import os
import sys
import uuid
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from memd.base.settings import ModelSettings

STUB = str(Path(__file__).with_name("stub_program.py"))


@dataclass(frozen=True, slots=True)
class Stub:
    """The stub with a behaviour; all that descends from it bears a mark of the test."""

    mark: str = field(default_factory=lambda: uuid.uuid4().hex)

    def argv(self, *behaviour: str) -> tuple[str, ...]:
        """Return its command line."""
        return ("env", f"OF_THIS_TEST={self.mark}", sys.executable, STUB, *behaviour)

    def settings(self, *behaviour: str) -> ModelSettings:
        """Return settings that name it."""
        return ModelSettings(provider="command", argv=self.argv(*behaviour))

    def left(self) -> list[int]:
        """Return the processes that are left of it."""
        found = []
        for process in psutil.process_iter():
            try:
                marked = process.environ().get("OF_THIS_TEST") == self.mark
                if marked and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process.pid)
            except (psutil.Error, OSError):
                continue
        return found

    def end(self) -> None:
        """End what a failed test left."""
        for pid in self.left():
            os.kill(pid, 9)
