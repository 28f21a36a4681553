"""A PostgreSQL for tests: one of our own in a scratch folder, or one that is there."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

GIVEN = "MEMD_TEAM_TEST_DATABASE"
READY = "ready to accept connections"


def missing() -> str:
    """Return why there is no PostgreSQL here, "" if there is one."""
    if GIVEN in os.environ or (shutil.which("initdb") and shutil.which("postgres")):
        return ""
    return f"PostgreSQL: initdb and postgres are not on PATH, and {GIVEN} is not set"


@contextmanager
def cluster() -> Iterator[str]:
    """Run a PostgreSQL behind a socket in a folder, as durable as it is by default."""
    if GIVEN in os.environ:
        yield os.environ[GIVEN]
        return
    folder = Path(tempfile.mkdtemp(prefix="memd-pg-"))
    user: dict[str, Any] = {"cwd": folder}
    if os.getuid() == 0:  # which PostgreSQL refuses to be
        other = pwd.getpwnam("nobody")
        os.chown(folder, other.pw_uid, other.pw_gid)
        user |= {"user": other.pw_uid, "group": other.pw_gid, "extra_groups": []}
    try:
        command = ["initdb", "-D", "data", "-A", "trust", "-U", "memd", "-E", "UTF8", "--no-sync"]
        subprocess.run(command, check=True, capture_output=True, **user)
        command = ["postgres", "-D", "data", "-k", str(folder), "-c", "listen_addresses="]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, **user) as server:
            assert server.stderr is not None
            assert any(READY in line for line in server.stderr), "PostgreSQL did not start"
            drain = threading.Thread(target=server.stderr.read)
            drain.start()
            try:
                yield f"postgresql://memd@/postgres?host={folder}"
            finally:
                server.send_signal(signal.SIGINT)
                drain.join()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def database(address: str) -> Iterator[str]:
    """Make a schema of its own for one test; what it holds is gone afterwards."""
    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
        try:
            mark = "&" if "?" in address else "?"
            yield f"{address}{mark}options=-csearch_path%3D{name}"
        finally:
            connection.execute(f"DROP SCHEMA {name} CASCADE")
