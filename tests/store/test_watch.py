"""The watch of directories that other programs remove."""

from pathlib import Path
from threading import Thread

from memd.store.watch import Watch

_ROUNDS = 300
_SECONDS = 60.0


def test_removed_directories_keep_nobody_waiting(tmp_path: Path) -> None:
    """Directories are watched, and once more, while the system tells that they are gone."""
    watch = Watch()
    watch.start(lambda: None)

    def come_and_go() -> None:
        for number in range(_ROUNDS):
            directory = tmp_path / str(number % 3)
            directory.mkdir()
            assert watch.add(str(directory))
            directory.rmdir()

    worker = Thread(target=come_and_go, daemon=True)
    worker.start()
    worker.join(_SECONDS)
    assert not worker.is_alive()
    watch.stop()
