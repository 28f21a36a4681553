"""Bugs to be seeded: each is a small edit of one file and the tests of which one must fail.

Those of the core under the crash kit are in ``core_mutants.py``, those of other rooms here.
"""

from dataclasses import dataclass

LOCKS, HOLDING = "memd/store/lock.py", "memd/dream/lock.py"
POWER = ("tests/crash/test_power.py", "-k", "before_or_after and write")
KILL = ("tests/crash/test_kill.py", "-k", "recovery and delete")
DREAM = ("tests/crash/test_dream.py", "-k", "every_call and kill and yes")
FAULT = ("tests/crash/test_faults.py", "-m", "crash", "-k", "every_call_may_fail and write")


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
        "fcntl.flock(guard, fcntl.LOCK_EX | fcntl.LOCK_NB)",
        "pass",
        ("tests/store/test_lock.py", "-k", "race"),
    ),
    Mutant(
        "a dream that failed leaves its own time",
        LOCKS,
        "        os.utime(opened, ns=(mtime_ns, mtime_ns))\n",
        "",
        ("tests/store/test_lock.py",),
    ),
    Mutant(
        "a lock's row goes before its file is settled",
        HOLDING,
        "            held.release(",
        "            self.table.forget(held.directory)\n            held.release(",
        DREAM,
    ),
    Mutant(
        "a lock is taken before its time is written down",
        LOCKS,
        "        remember(pid, taken_ns, prior_ns)\n",
        '        _write(folder, f"{pid}\\n", taken_ns)\n'
        "        _rename(folder)\n"
        "        remember(pid, taken_ns, prior_ns)\n"
        "        lock_file = _read(folder)\n",
        DREAM,
    ),
    Mutant(
        "a start ends the dream of a daemon that is leaving",
        HOLDING,
        "        if restored is not None:\n            self",
        "        if not restored:\n            self",
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
