"""What is fuzzed: doors that take bytes of strangers, and what each of them promises."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

Use = Callable[[bytes], None]


@dataclass(frozen=True, slots=True)
class Target:
    """One door.

    ``opened`` holds open what the door needs and gives a function that takes any bytes: it raises
    only where a promise of the door is broken. ``seeds`` are inputs that reach far into it,
    ``tokens`` words of its language. ``json`` says that inputs are JSON, or lines of it.
    """

    opened: Callable[[], AbstractContextManager[Use]]
    seeds: tuple[bytes, ...]
    tokens: tuple[bytes, ...] = ()
    json: bool = False
    longest: int = 4096


def plain(use: Use) -> Callable[[], AbstractContextManager[Use]]:
    """Return what opens a door that needs nothing."""

    @contextmanager
    def opened() -> Iterator[Use]:
        yield use

    return opened


@contextmanager
def scratch() -> Iterator[Path]:
    """Make a folder for small files."""
    with tempfile.TemporaryDirectory(prefix="memd-fuzz-") as folder:
        yield Path(folder)
