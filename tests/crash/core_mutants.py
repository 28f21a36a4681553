"""Bugs to be seeded into the core under the crash kit."""

from tests.crash.mutants import DREAM, FAULT, KILL, POWER, Mutant

APPLY, CHANGES, DISK = "memd/store/apply.py", "memd/store/changes.py", "memd/files/disk.py"
DATABASE, RECOVERY = "memd/state/database.py", "memd/store/recovery.py"

MUTANTS = (
    Mutant(
        "a body is not fsynced",
        DISK,
        "            disk.fsync(file)\n",
        "            pass\n",
        POWER,
    ),
    Mutant(
        "a folder is not fsynced",
        APPLY,
        "                self._disk.sync_folder(self._folders[folder_path])\n",
        "                pass\n",
        POWER,
    ),
    Mutant(
        "done is said before the mark is on the medium",
        DATABASE,
        "PRAGMA synchronous=FULL",
        "PRAGMA synchronous=NORMAL",
        POWER,
    ),
    Mutant(
        "a set is marked before its files are in place",
        CHANGES,
        "            try:\n                self._apply(directory, record, prepared.bodies, "
        "request.monotonic)\n",
        "            self._journal.mark_applied(record, request.at)\n"
        "            try:\n                self._apply(directory, record, prepared.bodies, "
        "request.monotonic)\n",
        KILL,
    ),
    Mutant(
        "what a crash left in an emptied folder stays",
        RECOVERY,
        "    for folder in sorted(folders):\n",
        "    for folder in {p.rpartition('/')[0] for p, *_ in directory.walk()} | {''}:\n",
        ("tests/store/test_recovery.py",),
    ),
    Mutant(
        "a failed fsync is tried again on the same descriptor",
        DISK,
        "            disk.fsync(file)\n",
        "            try:\n                disk.fsync(file)\n"
        "            except OSError:\n                disk.fsync(file)\n",
        ("tests/store/test_apply.py",),
    ),
    Mutant(
        "a file is written over in place",
        APPLY,
        "                self._disk.exchange(folder, step.temp, live)\n        except",
        "                with open(live, 'wb', opener=lambda p, f: __import__('os').open(\n"
        "                    p, f, dir_fd=folder)) as file:\n"
        "                    file.write(self._disk.read(folder, step.temp).content)\n"
        "        except",
        ("tests/store/test_apply.py",),
    ),
    Mutant(
        "what comes out of an exchange is not compared",
        APPLY,
        "        try:\n            self.verify(step)\n",
        "        try:\n            pass\n",
        ("tests/store/test_apply.py",),
    ),
    Mutant(
        "an editor that writes into the old file is not seen",
        CHANGES,
        "                    application.verify(step)\n",
        "                    pass\n",
        ("tests/store/test_changes.py",),
    ),
    Mutant(
        "a short write is taken for a whole one",
        DISK,
        "            rest = rest[disk.write(file, rest) :]\n",
        "            disk.write(file, rest)\n            rest = rest[:0]\n",
        FAULT,
    ),
    Mutant(
        "a failed set is not taken back",
        APPLY,
        "        for step in reversed(self._swapped):\n",
        "        for step in ():\n",
        FAULT,
    ),
    Mutant(
        "an open set is not finished by the next commit",
        RECOVERY,
        "    for record in journal.pending(directory.path):\n",
        "    for record in ():\n",
        FAULT,
    ),
    Mutant(
        "recovery writes over what was saved since",
        RECOVERY,
        "        elif hash_of(live) == step.before and _is_ours(step, body, temp):",
        "        elif True:",
        ("tests/store/test_recovery.py",),
    ),
    Mutant(
        "recovery believes every row",
        RECOVERY,
        "    hashes = [digest for digest in (step.before, step.after) if digest is not None]\n",
        "    return True\n    hashes = []\n",
        ("tests/store/test_recovery.py",),
    ),
    Mutant(
        "a new file replaces one that is there",
        DISK,
        "        if not self._native(folder, source, target, NOREPLACE):\n            os.link(",
        "        os.rename(source, target, src_dir_fd=folder, dst_dir_fd=folder)\n"
        "        if False:\n            os.link(",
        ("tests/files/test_disk.py",),
    ),
    Mutant(
        "a failing medium is written to for ever",
        "memd/base/health.py",
        "LIMIT = 2  #",
        "LIMIT = 2000000  #",
        ("tests/files/test_probe.py",),
    ),
    Mutant(
        "a mended medium stays closed",
        DISK,
        "        else:\n            health.succeeded()\n            return\n",
        "",
        ("tests/files/test_probe.py",),
    ),
    Mutant(
        "a probe is tried at every write",
        "memd/base/health.py",
        "        self._probed_at = now\n",
        "",
        ("tests/files/test_probe.py",),
    ),
    Mutant(
        "a deleted state file is written to for ever",
        DATABASE,
        "        if now == self._identity:\n",
        "        if now:\n",
        ("tests/state/test_database.py",),
    ),
    Mutant(
        "a damaged state file stays in use",
        DATABASE,
        "        if code in (*formats.DAMAGED, *formats.STUCK):\n            self.close()\n",
        "",
        ("tests/state/test_database.py",),
    ),
    Mutant(
        "a dream's change comes true without its time",
        "memd/dream/lock.py",
        "        docs.put(cursor, LockRow(",
        "        (docs.put, LockRow(",
        DREAM,
    ),
)
