"""Bugs to be seeded into the core under the crash kit."""

from tests.crash.mutants import DREAM, FAULT, KILL, POWER, Mutant

WRITE, EXCHANGE, DISK = "memd/store/write.py", "memd/store/exchange.py", "memd/store/disk.py"
STAMP = "memd/store/stamp.py"
LOG, SYNC, DATABASE = "memd/store/log.py", "memd/store/sync.py", "memd/state/database.py"
DIED, MET = ("tests/store/test_interruptions.py",), ("tests/store/test_exchanges.py",)
STATE = ("tests/state/test_database.py",)

MUTANTS = (
    Mutant(
        "a body is not fsynced",
        DISK,
        "        disk.fsync(file)\n        return os.fstat(file)",
        "        return os.fstat(file)",
        POWER,
    ),
    Mutant(
        "a folder is not fsynced",
        WRITE,
        "                for fd in folders.values():\n                    disk.sync_folder(fd)\n",
        "",
        POWER,
    ),
    Mutant(
        "done is said before the mark is on the medium",
        DATABASE,
        '_SYNCED = "PRAGMA synchronous=FULL"',
        '_SYNCED = "PRAGMA synchronous=NORMAL"',
        POWER,
    ),
    Mutant(
        "a change is done before its files are in place",
        WRITE,
        "ChangeRecord(0, request.directory, OPEN, self._clock.now(), by, steps, more)",
        "ChangeRecord(0, request.directory, DONE, self._clock.now(), by, steps, more)",
        KILL,
    ),
    Mutant(
        "a failed fsync is tried again on the same descriptor",
        DISK,
        "        disk.fsync(file)\n        return os.fstat(file)",
        "        try:\n            disk.fsync(file)\n"
        "        except OSError:\n            disk.fsync(file)\n        return os.fstat(file)",
        MET,
    ),
    Mutant(
        "a file is written over in place",
        EXCHANGE,
        "            disk.exchange(folder, step.temp, live)\n    except",
        "            with open(live, 'wb',\n"
        "                opener=lambda p, f: os.open(p, f, dir_fd=folder)) as file:\n"
        "                file.write(disk.read(folder, step.temp).content)\n    except",
        KILL,
    ),
    Mutant(
        "what comes out of an exchange is not compared",
        EXCHANGE,
        "    if replaced is None or replaced.hash not in expected:\n",
        "    if replaced is None and expected is None:\n",
        MET,
    ),
    Mutant(
        "a short write is taken for a whole one",
        DISK,
        "            rest = rest[disk.write(file, rest) :]\n",
        "            disk.write(file, rest)\n            rest = rest[:0]\n",
        MET,
    ),
    Mutant(
        "a failed change is not undone at once",
        WRITE,
        "            self._undo_after(opened, record, error)\n            raise\n",
        "            raise\n",
        FAULT,
    ),
    Mutant(
        "an open change is not undone by the next commit",
        WRITE,
        "                    for died in self._rows.open_changes(directory):\n",
        "                    for died in ():\n",
        DIED,
    ),
    Mutant(
        "an open change is not undone at the start",
        WRITE,
        "{record.directory for record in self._log.open_changes()}",
        "{record.directory for record in ()}",
        DIED,
    ),
    Mutant(
        "an undo writes over what was saved since",
        EXCHANGE,
        "        if temp and temp.hash != step.after:  # saved in between: the newest",
        "        if temp is None:  # the newest",
        MET,
    ),
    Mutant(
        "a torn file takes the place of a whole one",
        EXCHANGE,
        "        if temp.hash != step.before and is_torn(temp.content, step, log):\n",
        "        if temp.hash != step.before and log is None:\n",
        DIED,
    ),
    Mutant(
        "a torn file with gaps counts as somebody's text",
        EXCHANGE,
        "    return all(byte in (0, whole) for byte, whole in zip(content, body, strict=False))\n",
        '    return body.startswith(content.rstrip(b"\\0"))\n',
        DIED,
    ),
    Mutant(
        "a death between two calls stays half done",
        EXCHANGE,
        "    if disk.is_same(folder, temp, live):\n",
        "    if disk is None:\n",
        DIED,
    ),
    Mutant(
        "recovery believes every path",
        WRITE,
        "if concerns(each.path) and _TEMP.fullmatch(each.temp)\n",
        "if _TEMP.fullmatch(each.temp)\n",
        DIED,
    ),
    Mutant(
        "recovery believes every temporary name",
        WRITE,
        "if concerns(each.path) and _TEMP.fullmatch(each.temp)\n",
        "if concerns(each.path)\n",
        DIED,
    ),
    Mutant(
        "a file of an older state file is taken for a late save",
        WRITE,
        "(each for each in record.steps if each.temp == f\"{match['name']}.tmp\")",
        "iter(record.steps)",
        DIED,
    ),
    Mutant(
        "a late save is dropped",
        WRITE,
        "                if not is_known and not torn:\n",
        "                if not is_known and torn:\n",
        MET,
    ),
    Mutant(
        "a late save that begins like memd's text is dropped",
        WRITE,
        "torn = record.state == UNDONE and is_torn(",
        "torn = is_torn(",
        DIED,
    ),
    Mutant(
        "the replaced files of a done change stay",
        WRITE,
        "                        return delayed, True\n"
        "                self._disk.unlink(folder, name)\n",
        "                        return delayed, True\n",
        MET,
    ),
    Mutant(
        "a new file replaces one that is there",
        DISK,
        "        if not (self._renamer and self._renamer(folder, source, target, NOREPLACE)):\n"
        "            os.link(",
        "        os.rename(source, target, src_dir_fd=folder, dst_dir_fd=folder)\n"
        "        if False:\n            os.link(",
        MET,
    ),
    Mutant(
        "an emptied file's row says that it is empty",
        SYNC,
        '        if content == b"" and was_text and (patient',
        "        if content is None and was_text and (patient",
        DIED,
    ),
    Mutant(
        "a young stamp is believed",
        STAMP,
        "    if status.st_ctime >= at - (_FINE_SECONDS if is_fine else _COARSE_SECONDS):\n",
        "    if status.st_ctime >= at:\n",
        ("tests/store/test_sync.py",),
    ),
    Mutant(
        "rows do not come with their change",
        WRITE,
        "                self._rows.save(cursor, request.directory, rows, words)\n",
        "",
        MET,
    ),
    Mutant(
        "the answers of request ids are not kept",
        WRITE,
        "                if request.id:\n                    answer",
        "                if not request:\n                    answer",
        DIED,
    ),
    Mutant(
        "effects come true before their change",
        WRITE,
        "                self._log.mark(cursor, record, DONE)\n",
        "                for effect in draft.effects:\n"
        "                    effect(cursor, record.id)\n"
        "            with self._log.database.transaction() as cursor:\n"
        "                self._log.mark(cursor, record, DONE)\n",
        MET,
    ),
    Mutant(
        "a body goes without those that were packed against it",
        LOG,
        "        for number in ids:\n"
        '            cursor.execute("SELECT * FROM body WHERE base = ?"',
        '        for number in ():\n            cursor.execute("SELECT * FROM body WHERE base = ?"',
        DIED,
    ),
    Mutant(
        "a pruned history takes the texts of files along",
        "memd/store/forget.py",
        "(SELECT hash FROM file UNION SELECT hash FROM team_bodies)",
        "(SELECT hash FROM team_bodies)",
        MET,
    ),
    Mutant(
        "a refused text is not kept",
        WRITE,
        "            if draft is None or not is_conflict or all(",
        "            if draft or not is_conflict or all(",
        MET,
    ),
    Mutant(
        "a deleted state file is written to for ever",
        DATABASE,
        "            if writing and self._connection is not None and _identity(",
        "            if not writing and self._connection is not None and _identity(",
        STATE,
    ),
    Mutant(
        "a damaged state file stays in use",
        DATABASE,
        "        if code in (*_DAMAGED, *_STUCK):\n            self.close()\n",
        "",
        STATE,
    ),
    Mutant(
        "a dream's change comes true without its time",
        "memd/dream/lock.py",
        "        docs.put(cursor, LockRow(",
        "        (docs.put, LockRow(",
        DREAM,
    ),
)
