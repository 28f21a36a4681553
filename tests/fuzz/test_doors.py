"""Every door keeps its promises on all inputs that are kept, and on some that are new."""

import random

import pytest

from tests.fuzz.inputs import corpus_file, kept
from tests.fuzz.mutation import mutated
from tests.fuzz.targets import NAMES, target

_NEW = 60  # of each door, the same in every run; make fuzz tries millions
_BYTES = 32 * 1024


@pytest.mark.parametrize("name", NAMES)
def test_what_was_found_stays_found(name: str) -> None:
    """No kept input, and none of a few that are made of them, breaks a promise of its door."""
    door, inputs = target(name), kept(name)
    chance = random.Random(name)  # noqa: S311 - the same inputs in every run
    with door.opened() as use:
        for data in inputs:
            use(data)
        for _ in range(_NEW):
            data = mutated(chance, inputs, door.tokens, as_json=door.json)
            use(data[: door.longest])


def test_what_is_kept_is_small() -> None:
    """The kept inputs of each door have a bound, and every file belongs to a door."""
    files = {corpus_file(name) for name in NAMES}
    folder = corpus_file("any").parent
    assert set(folder.glob("*")) <= files
    assert all(sum(map(len, kept(name))) <= 2 * _BYTES for name in NAMES)
