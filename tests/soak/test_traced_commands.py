"""G13: what the kernel sees of hostile command lines: files that are read, and nothing else."""

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agent.traced_commands import BEGIN, END
from tests.crash import kill
from tests.soak.figures import FIGURE

# All that starts a process, reaches another, or changes anything but memory.
_CALLS = (
    "%process,%network,open,openat,openat2,creat,write,pwrite64,writev,pwritev,pwritev2,sendfile,"
    "copy_file_range,splice,truncate,ftruncate,fallocate,rename,renameat,renameat2,unlink,unlinkat,"
    "mkdir,mkdirat,rmdir,link,linkat,symlink,symlinkat,mknod,mknodat,chmod,fchmod,fchmodat,chown,"
    "fchown,fchownat,lchown,utimensat,utime,utimes,setxattr,lsetxattr,fsetxattr,removexattr,mount,"
    "umount2,chroot,ptrace,memfd_create,io_uring_setup,prctl,setuid,setgid,kill,tgkill"
)
_OPENING = ("open", "openat", "openat2")
_CHANGING = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_APPEND|O_TMPFILE")
_CALL = re.compile(r"^(?:\d+ +)?(\w+)\(")
# Threads of the interpreter come and go; memory is asked for and given back.
_INNOCENT = frozenset(("futex", "exit", "rt_sigprocmask"))


@pytest.mark.skipif(bool(kill.missing()), reason=kill.missing() or "strace traces")
@pytest.mark.parametrize("count", [300, pytest.param(100_000, marks=pytest.mark.soak)])
def test_the_kernel_sees_files_read_and_nothing_else(
    tmp_path: Path, count: int, record_property: Callable[[str, object], None]
) -> None:
    """No process, no socket, no file opened for writing, and nothing changed, whatever is asked."""
    trace, home = tmp_path / "trace", tmp_path / "home"
    home.mkdir()
    command = ["strace", "-f", "--seccomp-bpf", "-o", str(trace), "-e", f"trace={_CALLS}"]
    command += [sys.executable, "-B", "-m", "tests.agent.traced_commands", str(home), str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    calls, wrong = Counter[str](), list[str]()
    with trace.open(errors="replace") as lines:
        for line in lines:
            if BEGIN in line:
                break
        for line in lines:
            if END in line:
                break
            match = _CALL.match(line)
            name = match[1] if match else line.split()[1]
            calls[name] += 1
            if name not in _INNOCENT and (name not in _OPENING or _CHANGING.search(line)):
                wrong.append(line)
    record_property(
        FIGURE,
        f"G13 {int(done.stdout):,} command lines under strace: {sum(calls.values()):,} calls that"
        f" could do something ({dict(calls)}), {len(wrong)} that did",
    )
    assert wrong == []
    assert sum(calls[name] for name in _OPENING) > count / 10
