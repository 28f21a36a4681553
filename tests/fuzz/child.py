"""One door fuzzed in a process of its own: ``python -m tests.fuzz.child NAME SECONDS FOLDER``.

With atheris coverage leads, without it chance alone. An input that breaks a promise is written into
the folder as ``crash-…``, and the process ends with another status than 0.
"""

import hashlib
import random
import resource
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.fuzz.inputs import kept
from tests.fuzz.mutation import mutated
from tests.fuzz.targets import target

try:
    import atheris
except ImportError:  # no wheel for this system: chance alone
    atheris = None

_INPUT_SECONDS = 25  # one input may take so long on a busy machine
_RSS_MIB = 1_000
_ADDRESSES = 8 * 1024**3
_GRACE_SECONDS = 90  # for imports with instruments, and the inputs to begin with


def main() -> int:
    """Fuzz until the time is over."""
    name, seconds, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    _bound(seconds)
    if atheris is None:
        return _by_chance(name, seconds, folder)
    with atheris.instrument_imports(include=["memd"]):
        door = target(name)
    inputs = _write_all(folder / "seeds", name)

    def mutate(data: bytes, size: int, seed: int) -> bytes:
        chance = random.Random(seed)  # noqa: S311 - the fuzzer's own
        if chance.random() < 1 / 2:
            return bytes(atheris.Mutate(data, size))
        others = (*(data or b"0",) * 3, chance.choice(inputs))
        return mutated(chance, others, door.tokens, as_json=door.json)[:size]

    with door.opened() as use:
        options = [
            f"-max_total_time={seconds}", f"-timeout={_INPUT_SECONDS}", f"-rss_limit_mb={_RSS_MIB}",
            f"-max_len={door.longest}", f"-artifact_prefix={folder}/", "-print_final_stats=1",
            f"{folder}/corpus", f"{folder}/seeds",
        ]  # fmt: skip
        atheris.Setup([sys.argv[0], *options], use, custom_mutator=mutate)
        atheris.Fuzz()
    return 0


def _bound(seconds: int) -> None:
    """Bound this process: its processor time, its addresses, and no core."""
    resource.setrlimit(resource.RLIMIT_CPU, (2 * seconds + _GRACE_SECONDS,) * 2)
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESSES, _ADDRESSES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _write_all(folder: Path, name: str) -> Sequence[bytes]:
    """Write the inputs to begin with as files, and return them."""
    inputs = kept(name)
    for content in inputs:
        (folder / hashlib.sha256(content).hexdigest()[:16]).write_bytes(content)
    return inputs


def _by_chance(name: str, seconds: int, folder: Path) -> int:
    """Change inputs at random, without looking at what is reached."""
    door, inputs = target(name), _write_all(folder / "seeds", name)
    chance, count, until = random.Random(), 0, time.monotonic() + seconds  # noqa: S311 - no secret
    with door.opened() as use:
        while time.monotonic() < until:
            data = mutated(chance, inputs, door.tokens, as_json=door.json)[: door.longest]
            try:
                use(data)
            except BaseException:
                (folder / f"crash-{hashlib.sha256(data).hexdigest()[:16]}").write_bytes(data)
                raise
            count += 1
    sys.stdout.write(f"stat::number_of_executed_units: {count}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
