"""A program that answers for a model as badly as it is told to: ``stub_program.py behaviour``."""

import os
import select
import signal
import subprocess
import sys

_BRANCH = "import os, signal, sys; sys.argv[1] == 'far' and os.setsid(); signal.pause()"


def deaf() -> str:
    """Hear no request to end."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    return hangs()


def hangs() -> str:
    """Do nothing for ever."""
    signal.pause()
    return ""


def orphans() -> str:
    """Leave children behind, two of them in sessions of their own."""
    for place in ("near", "far", "far"):
        subprocess.Popen([sys.executable, "-c", _BRANCH, place])
    return "[]"


def forks() -> str:
    """Hang with children."""
    orphans()
    return hangs()


def floods() -> str:
    """Print 100 MB."""
    for _ in range(100):
        os.write(1, b"x" * 1_000_000)
    return ""


def fails() -> str:
    """End with an error."""
    sys.exit("please sign in first")


def environment() -> str:
    """Tell what is seen from here."""
    return f"{sorted(os.environ)} {os.listdir('.')} {os.getpgid(0) == os.getpid()}"


def slow() -> str:
    """Note when it begins and ends."""
    with open(sys.argv[2], "a", buffering=1) as log:
        log.write("begin\n")
        select.select([], [], [], 0.2)
        log.write("end\n")
    return "[]"


def calls() -> str:
    """Send a request to a socket from a child in a session of its own, and note the answer."""
    program = (
        "import os, socket, sys; os.setsid(); s = socket.socket(socket.AF_UNIX);"
        " s.connect(sys.argv[1]); s.sendall(sys.argv[2].encode() + b'\\n');"
        " open(sys.argv[3], 'wb').write(s.makefile('rb').readline())"
    )
    subprocess.run([sys.executable, "-c", program, *sys.argv[2:]], env={}, check=True)
    return "[]"


def echo() -> str:
    """Print the request."""
    return sys.stdin.read()


if __name__ == "__main__":
    _known = (deaf, hangs, orphans, forks, floods, fails, environment, slow, calls, echo)
    _behaviour = {known.__name__: known for known in _known}.get(sys.argv[1])
    sys.stdout.write(_behaviour() if _behaviour else sys.argv[1])
