"""Bugs to be seeded: each is a small edit of one file and the tests of which one must fail.

Those of the core under the crash kit are in ``core_mutants.py``, those of other rooms here.
"""

from dataclasses import dataclass

LOCKS, HOLDING = "memd/watch/locks.py", "memd/dream/lock.py"
POWER = ("tests/crash/test_power.py", "-k", "before_or_after and write")
KILL = ("tests/crash/test_kill.py", "-k", "recovery and delete")
DREAM = ("tests/crash/test_dream.py", "-k", "every_call and kill and yes")
FAULT = ("tests/crash/test_faults.py", "-m", "not crash")


@dataclass(frozen=True)
class Mutant:
    """A bug by name: in ``path`` the text ``old`` becomes ``new``; ``tests`` must notice."""

    name: str
    path: str
    old: str
    new: str
    tests: tuple[str, ...]


OTHERS = (
    Mutant(
        "the lock is a PID and nothing else",
        LOCKS,
        "        fcntl.flock(guard, fcntl.LOCK_EX | fcntl.LOCK_NB)\n",
        "",
        ("tests/watch/test_locks.py", "-k", "race"),
    ),
    Mutant(
        "a dream that failed leaves its own time",
        LOCKS,
        "            os.utime(opened, ns=(mtime_ns, mtime_ns))\n",
        "",
        ("tests/watch/test_locks.py",),
    ),
    Mutant(
        "a lock's row goes before its file is settled",
        HOLDING,
        "            if is_complete or held.prior_ns == held.taken_ns:\n",
        "            self.table.forget(held.directory)\n"
        "            if is_complete or held.prior_ns == held.taken_ns:\n",
        DREAM,
    ),
    Mutant(
        "a lock is taken before its time is written down",
        LOCKS,
        "            remember(pid, taken_ns, prior_ns)\n"
        '            _write(folder, directory, f"{pid}\\n".encode(), taken_ns)\n',
        '            _replace(folder, directory, f"{pid}\\n".encode(), taken_ns)\n'
        "            remember(pid, taken_ns, prior_ns)\n"
        "            found = _read(folder, directory)\n"
        '            _write(folder, directory, f"{pid}\\n".encode(), taken_ns)\n',
        DREAM,
    ),
    Mutant(
        "a start ends the dream of a daemon that is leaving",
        HOLDING,
        "        if restored is not Restored.WAITS:\n            self",
        "        if restored:\n            self",
        ("tests/dream/test_lock.py",),
    ),
    Mutant(
        "an event that the disk refused leaves the spool",
        "memd/daemon/missed.py",
        "            if isinstance(result, MemdError) and result.of_disk:\n"
        "                break  # the events stay until the disk works again\n",
        "",
        ("tests/daemon/test_missed.py",),
    ),
)
