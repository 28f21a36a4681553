"""The hook that clients run: send the event's raw payload to the daemon and print its answer.

``memctl setup`` copies this file into the user's data directory (``client/hook_file``) and has the
client run it there through ``hook_stub.py``, ``python -I -S hook.py <client> <event> [messages]``:

- ``hook.c`` does the same without Python where it was compiled, and runs this file for what is
  rare; ``unanswered`` behind the event says that the daemon was asked in vain.
- Only ``_socket`` is imported from outside the interpreter, nothing of memd. A test holds the
  values that are repeated here equal to memd's own.
- There is no client logic. The daemon builds the exact text for the client and sends it as the
  last member of its answer; the bytes of that member are printed unchanged.
- A timer ends the whole process after ``EVENT_MS`` or 200 ms (``MEMD_HOOK_DEADLINE_MS``: prompts).
- An end of a turn or a session, or a compaction, that nobody answered is written to the spool: one
  file an event, which says where the conversation is, not what was said. The daemon reads it later.
- With ``messages`` the daemon is told on the same connection that the answer was printed.
- Whatever goes wrong, nothing is printed and the status is 0: others block prompts or show errors.
- When no daemon listens, one is started (``client/launch``, in one more run of this file); not
  beside a start under way, for 30 seconds after one that failed, or with ``MEMD_HOOK_NO_START=1``.
- Below a program that memd itself runs for a model (``MEMD_MODEL_RUN``) nothing is sent. Where
  memd was uninstalled nothing is started; the log says once how to remove the hook.
- Python 3.9 can run this file: it runs with any Python if memd's own is gone.
"""

import _signal  # type: ignore[import-not-found]  # built in; no stub names it
import _socket
import posix
import sys
import time

FORWARDED = (
    b"MEMD_MEMORY_PATH CLAUDE_COWORK_MEMORY_PATH_OVERRIDE CLAUDE_CODE_REMOTE_MEMORY_DIR "
    b"MEMD_BASE_DIR CLAUDE_CONFIG_DIR CLAUDE_PROJECT_DIR CODEX_HOME GEMINI_CLI_HOME MEMD_DISABLE "
    b"CLAUDE_CODE_DISABLE_AUTO_MEMORY CLAUDE_CODE_SIMPLE CLAUDE_CODE_REMOTE "
    b"CLAUDE_CODE_SESSION_ATTENDED DISABLE_COMPACT DISABLE_AUTO_COMPACT MEMD_CONTEXT_WINDOW "
    b"MEMD_EXTRA_GUIDELINES CLAUDE_COWORK_MEMORY_EXTRA_GUIDELINES"
).split()
FRAME_BYTES, HEADER_BYTES = 4 * 1024 * 1024, 8 * 1024  # limits of a frame on the socket
PAYLOAD_BYTES = FRAME_BYTES - 64 * 1024  # room for the frame around it
PROMPT_EVENTS = ("UserPromptSubmit", "BeforeAgent")
SPOOLED_EVENTS = ("Stop", "PreCompact", "SessionEnd", "AfterAgent")
# No prompt id: the daemon may have begun with this event, and would drop it as a repeat.
SPOOLED_MEMBERS = (b"session_id", b"transcript_path", b"cwd", b"agent_id")
SPOOL_FILES, SPOOL_BYTES, SPOOL_SECONDS = 200, 4096, 1.0  # bytes of a file; time to read or write
EVENT_MS = {"SessionStart": 400, "PreCompact": 800, "Stop": 40, "AfterAgent": 40, "SessionEnd": 40}
DEFAULT_MS, MIN_MS, MAX_MS = 200, 10, 10_000  # MIN and MAX bound the setting hooks.deadline_ms
CONNECT_SECONDS, START_SECONDS = 0.05, 30  # a failing start is not repeated sooner
ANSWER = b'{"jsonrpc":"2.0","id":1,"result":'  # how the daemon begins an answer with a result
PRINTED_NOTICE = b'Content-Length: 41\r\n\r\n{"jsonrpc":"2.0","method":"hook.printed"}'
# Socket level, option and size that give the user at the other end, as in memd.client.peer.
PEER = (0, 1, 76) if sys.platform == "darwin" else (_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
FILE = __file__.encode(errors="surrogateescape")
FOLDER = FILE.rpartition(b"/")[0] or b"."
LAUNCH, OWN_RUN = "launch", b"MEMD_MODEL_RUN"  # an argument of this file; a variable
ORPHANED_MESSAGE = (
    b"memd is not installed any more, but Claude Code still runs its hook, which does nothing. "
    b"Take the entries that name %s out of ~/.claude/settings.json and delete that file. "
    b"Or install memd again and run: memctl setup claude-code --remove\n"
) % FILE
_CHUNK_BYTES, _APPEND_FLAGS = 65536, posix.O_WRONLY | posix.O_CREAT | posix.O_APPEND
_JSON_ESCAPES = {code: f"\\u{code:04x}" for code in range(32)} | {34: '\\"', 92: "\\\\"}
S_IFDIR, S_IFSOCK = 0o040000, 0o140000  # the kinds of a file in its mode

Environ = dict[bytes, bytes]
CONNECTIONS: list[_socket.socket] = []  # the one on which PRINTED_NOTICE is still to be sent


class OverdueError(Exception):
    """The deadline has passed. It is no OSError, so no ``except OSError`` catches it."""


def places(environ: Environ, home: bytes, platform: str) -> tuple[bytes, bytes]:
    """Return the socket's path (empty where it would not fit) and the state directory.

    The same rule as ``memd.base.places.find``, on bytes.
    """
    macos = platform == "darwin"
    state = environ.get(b"MEMD_STATE_DIR") or (
        home + b"/Library/Application Support/memd"
        if macos
        else _absolute_path_in(environ, b"XDG_STATE_HOME", home + b"/.local/state") + b"/memd"
    )
    runtime = _absolute_path_in(environ, b"XDG_RUNTIME_DIR", b"")
    socket = environ.get(b"MEMD_SOCKET") or (
        runtime + b"/memd/memd.sock" if runtime and not macos else state + b"/run/memd.sock"
    )
    longest = 103 if macos else 107  # bytes of a Unix socket's path, without the final null
    return (socket if len(socket) <= longest else b""), state


def home_directory(environ: Environ) -> bytes:
    """Return the home directory as ``os.path.expanduser`` finds it."""
    if b"HOME" in environ:
        return environ[b"HOME"].rstrip(b"/") or b"/"
    import pwd  # noqa: PLC0415 - built in; only a process without HOME needs it

    return pwd.getpwuid(posix.getuid()).pw_dir.encode().rstrip(b"/") or b"/"


def deadline_seconds(event: str, environ: Environ) -> float:
    """Return how many seconds this event may wait for the daemon."""
    setting = environ.get(b"MEMD_HOOK_DEADLINE_MS", b"")
    if event in PROMPT_EVENTS and setting.isdigit() and MIN_MS <= int(setting) <= MAX_MS:
        return int(setting) / 1000
    return EVENT_MS.get(event, DEFAULT_MS) / 1000


def read_input(descriptor: int, payload: bytearray) -> None:
    """Append what a descriptor holds to ``payload``, up to a little over PAYLOAD_BYTES.

    The end of a whole object is the end: some clients keep the pipe open.
    """
    chunk = b"..."  # not empty, so that the loop begins
    while chunk and len(payload) <= PAYLOAD_BYTES:
        try:
            chunk = posix.read(descriptor, _CHUNK_BYTES)
        except OSError:  # no standard input at all
            return
        payload += chunk
        if chunk.rstrip().endswith(b"}") and is_whole(payload):
            return


def is_whole(payload: "bytes | bytearray") -> bool:
    """Return whether the JSON object with which a payload begins has ended."""
    if not payload.lstrip().startswith(b"{"):
        return False
    pieces = payload.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
    outside = b"".join(pieces[::2])  # of strings
    return len(pieces) % 2 == 1 and outside.count(b"{") == outside.count(b"}")


def hook_request(client: str, event: str, payload: bytes, environ: Environ, first: str) -> bytes:
    """Return the JSON-RPC request with the event's payload unchanged: the daemon parses it.

    ``first`` is the first member of the parameters, with a comma, or "". A payload without braces
    at both ends becomes null. Raises UnicodeDecodeError for a forwarded variable that is not UTF-8.
    """
    payload = payload.strip()
    if not (payload.startswith(b"{") and payload.endswith(b"}")):
        payload = b"null"
    forwarded = ",".join(
        f"{quote(name.decode())}:{quote(environ[name].decode())}"
        for name in FORWARDED
        if name in environ
    )
    milliseconds = int(deadline_seconds(event, environ) * 1000)
    head = (
        f'{{"jsonrpc":"2.0","id":1,"method":"hook","params":{{{first}'
        f'"deadline_ms":{milliseconds},'
        f'"client":{quote(client)},"event":{quote(event)},"environment":{{{forwarded}}},"payload":'
    )
    return head.encode() + payload + b"}}"


def quote(text: str) -> str:
    """Return a text as a JSON string."""
    return f'"{text.translate(_JSON_ESCAPES)}"'


def result_of(body: bytes) -> bytes:
    """Return the bytes of the result in an answer, empty for null or an error."""
    if not (body.startswith(ANSWER) and body.endswith(b"}")):
        return b""
    result = body[len(ANSWER) : -1]
    return b"" if result == b"null" else result


def send_request(path: bytes, request: bytes, *, keep_open: bool = False) -> bytes:
    """Send one request to the daemon and return the body of the answer, empty if there is none.

    ``keep_open`` leaves the connection in CONNECTIONS. Nothing is sent to a server that may be
    another user's. Raises OSError: FileNotFoundError or ConnectionRefusedError without a daemon.
    """
    sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        sock.settimeout(CONNECT_SECONDS)
        if not connect(sock, path):
            return b""
        sock.settimeout(None)  # from here on the process's own timer decides
        sock.sendall(b"Content-Length: %d\r\n\r\n" % len(request) + request)
        CONNECTIONS[:] = [sock] if keep_open else []
        return _receive(sock)
    finally:
        if not keep_open:
            sock.close()


def connect(sock: _socket.socket, path: bytes) -> bool:
    """Connect a socket to a path; return whether this user's own process serves there.

    Raises OSError. Where it returns ``False`` nothing may be sent.
    """
    folder = path.rpartition(b"/")[0] or b"."
    if not (_is_private(folder, S_IFDIR) and _is_private(path, S_IFSOCK)):
        return False
    sock.connect(path)
    # The names may have been exchanged since: what counts is who listens at this connection.
    return int.from_bytes(sock.getsockopt(*PEER)[4:8], sys.byteorder) == posix.geteuid()


def start_daemon(state: bytes, environ: Environ, now: float) -> int:
    """Run ``launch`` in a session of its own and return its pid, or 0 if it may not run now."""
    if environ.get(b"MEMD_HOOK_NO_START", b"") not in {b"", b"0"} or not claim_start(state, now):
        return 0
    actions = [
        (posix.POSIX_SPAWN_OPEN, 0, "/dev/null", posix.O_RDONLY, 0),
        (posix.POSIX_SPAWN_OPEN, 1, state + b"/memd.log", _APPEND_FLAGS, 0o600),
        (posix.POSIX_SPAWN_DUP2, 1, 2),
    ]
    python = interpreter(FOLDER)
    command: list[bytes | str] = [python, "-E", FILE, LAUNCH]  # -E: without the client's PYTHONPATH
    try:
        return posix.posix_spawn(python, command, environ, file_actions=actions, setsid=True)
    except NotImplementedError:  # pragma: no cover - a C library without POSIX_SPAWN_SETSID
        return posix.posix_spawn(python, command, environ, file_actions=actions, setpgroup=0)


def interpreter(folder: bytes) -> bytes:
    """Return the path of the Python that has memd, by this folder's link, else the running one."""
    try:
        python = posix.readlink(folder + b"/interpreter")
        posix.stat(python)
    except OSError:
        return sys.executable.encode(errors="surrogateescape")
    return python


def launch() -> None:
    """Start a daemon as every client does, or say once in the log that memd is gone."""
    sys.path[:1] = []  # this file's own folder is no place to import from
    try:
        from memd.client.launch import main as connect  # noqa: PLC0415 - not on the hot path
    except ImportError:
        if create_marker(FOLDER + b"/orphaned"):
            posix.write(2, ORPHANED_MESSAGE)
    else:
        connect()  # which starts a daemon if none runs


def create_marker(path: bytes) -> bool:
    """Create an empty file; return whether this process created it."""
    try:
        posix.close(posix.open(path, posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL, 0o600))
    except OSError:
        return False
    return True


def claim_start(state: bytes, now: float) -> bool:
    """Return whether this process may start a daemon; only one may in START_SECONDS.

    This only avoids many starts at once. A daemon's starter removes the file once it is up.
    """
    _make_directory(state)
    stamp = state + b"/hook-start"
    try:
        if 0 <= now - posix.stat(stamp).st_mtime < START_SECONDS:
            return False
        posix.unlink(stamp)
    except FileNotFoundError:
        pass
    return create_marker(stamp)


def send_event(
    client: str,
    event: str,
    paths: "tuple[bytes, bytes]",
    environ: Environ,
    payload: bytes,
    *,
    messages: bool,
) -> "bytes | None":
    """Send one event and return the body of the answer, empty if there is none.

    ``paths`` are those of ``places``. Returns ``None`` if no daemon listens there, nor at the
    socket that the file of the daemon's lock names: a program that hands on only a part of its
    environment (Codex to its MCP servers, cron, su) may have started a daemon at another path.
    ``messages`` asks the daemon for messages of other agents too. Raises ValueError and
    OverdueError.
    """
    path, state = paths
    if not path or len(payload) > PAYLOAD_BYTES:
        return b""
    first = '"messages":true,' if messages else ""
    request = hook_request(client, event, payload, environ, first)
    try:
        return send_request(path, request, keep_open=messages)
    except (FileNotFoundError, ConnectionRefusedError):
        path = serving_socket(state)
    except OSError:
        return b""
    try:
        return send_request(path, request, keep_open=messages) if path else None
    except (FileNotFoundError, ConnectionRefusedError):
        return None
    except OSError:
        return b""


def serving_socket(state: bytes) -> bytes:
    """Return the socket's path in the lock file of the daemon that runs, empty if none runs."""
    try:
        file = posix.open(
            state + b"/memd.lock", posix.O_RDONLY | posix.O_NOFOLLOW | posix.O_NONBLOCK
        )
    except OSError:
        return b""
    try:
        path = posix.read(file, HEADER_BYTES).partition(b'"socket": "')[2].partition(b'"')[0]
    except OSError:  # it is no file
        path = b""
    posix.close(file)
    return b"" if b"\\" in path else path  # an escape of JSON


def write_to_spool(state: bytes, client: str, event: str, environ: Environ, payload: bytes) -> None:
    """Write an event to the spool, its ``location`` as payload. Raises OSError and ValueError."""
    names = (name for name in environ if not name.endswith(b"_GUIDELINES"))
    sent_environ = {name: environ[name] for name in names}
    short_payload = location(payload)
    request = hook_request(client, event, short_payload, sent_environ, "")
    if len(request) > SPOOL_BYTES or short_payload == b"{}":
        return  # without a location the daemon could read no conversation
    folder = state + b"/spool/"
    _make_directory(folder)
    for name in sorted(posix.listdir(folder), reverse=True)[SPOOL_FILES - 1 :]:
        try:  # noqa: SIM105 - contextlib would be one more import
            posix.unlink(folder + name)
        except OSError:  # another hook was quicker
            pass
    name = b"%020d-%d" % (time.time_ns(), posix.getpid())
    draft = folder + b"." + name  # the daemon must not see half of it
    file = posix.open(draft, posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL, 0o600)
    posix.write(file, request)
    posix.close(file)
    posix.rename(draft, folder + name)


def location(payload: bytes) -> bytes:
    """Return those members of a payload that say where the conversation is, as a JSON object."""
    # Only a member has its name in quotes: inside a JSON string quotes would be escaped.
    names = (b'"%s"' % name for name in SPOOLED_MEMBERS)
    members = ((name, _text_member(payload, name)) for name in names)
    return b"{" + b",".join(name + b":" + text for name, text in members if text) + b"}"


def _text_member(payload: bytes, quoted_name: bytes) -> bytes:
    """Return the JSON string that follows a name and a colon, empty if there is none."""
    pieces = (piece[:SPOOL_BYTES].lstrip() for piece in payload.split(quoted_name)[1:])
    text = next((piece[1:].lstrip() for piece in pieces if piece.startswith(b":")), b"")
    if not text.startswith(b'"'):
        return b""
    end = text.find(b'"', 1)
    # A quote behind an odd number of backslashes is escaped and does not end the string.
    while end > 0 and (end - len(text[:end].rstrip(b"\\"))) % 2:
        end = text.find(b'"', end + 1)
    return text[: end + 1]


def _is_private(path: bytes, kind: int) -> bool:
    """Return whether a file is of this kind (S_IFMT), owned by the user and closed to others."""
    status = posix.lstat(path)
    return status.st_uid == posix.geteuid() and status.st_mode & 0o170077 == kind


def _absolute_path_in(environ: Environ, name: bytes, default: bytes) -> bytes:
    """Return the absolute path in a variable, else the default: XDG ignores relative paths."""
    value = environ.get(name, b"")
    return value.rstrip(b"/") if value.startswith(b"/") else default


def _receive(sock: _socket.socket) -> bytes:
    """Return the body of the frame that the daemon sends, empty if it is cut or too large."""
    data = b""
    while b"\r\n\r\n" not in data:
        chunk = sock.recv(_CHUNK_BYTES)
        if not chunk or len(data) > HEADER_BYTES:
            return b""
        data += chunk
    header, _, body = data.partition(b"\r\n\r\n")
    name, _, value = header.partition(b":")
    length = int(value) if name.lower() == b"content-length" else 0
    if length > FRAME_BYTES:
        return b""
    while len(body) < length and chunk:
        chunk = sock.recv(_CHUNK_BYTES)
        body += chunk
    return body[:length] if len(body) >= length else b""


def _make_directory(path: bytes) -> None:
    """Create a directory and those above it, for the user alone; errors are ignored."""
    parts = path.split(b"/")
    for end in range(2, len(parts) + 1):
        try:  # noqa: SIM105 - contextlib would be one more import
            posix.mkdir(b"/".join(parts[:end]), 0o700)
        except OSError:  # it is there, or cannot be made: the file in it tells
            pass


def _raise_overdue(*_: object) -> None:  # the handler of the timer's signal
    raise OverdueError


def _print(text: bytes) -> None:  # pragma: no cover - as main
    """Print the daemon's answer, then tell the daemon so on an open connection."""
    if not text:
        return  # the daemon only needs to know what was printed
    while text and sys.stdout is not None:
        text = text[posix.write(1, text) :]
    for sock in CONNECTIONS:
        sock.settimeout(CONNECT_SECONDS)  # do not wait for a daemon that stopped reading
        sock.sendall(PRINTED_NOTICE)


def main() -> None:  # pragma: no cover - leaves by _exit; the tests run it as a process
    """Handle one event and exit with status 0 within the deadline, whatever happens."""
    try:
        if sys.argv[1:] == [LAUNCH]:
            launch()
            return
        client, event, *more = sys.argv[1:]
        environ = posix.environ
        if OWN_RUN in environ:
            return
        _signal.signal(_signal.SIGALRM, _raise_overdue)
        # A client may start its hooks with all signals blocked.
        _signal.pthread_sigmask(_signal.SIG_UNBLOCK, (_signal.SIGALRM,))
        spoolable, seconds = event in SPOOLED_EVENTS, deadline_seconds(event, environ)
        _signal.setitimer(_signal.ITIMER_REAL, SPOOL_SECONDS if spoolable else seconds)
        path, state = places(environ, home_directory(environ), sys.platform)
        payload = bytearray()
        body: bytes | None = b""
        try:
            read_input(0, payload)
            if spoolable:
                _signal.setitimer(_signal.ITIMER_REAL, seconds)
            if "unanswered" not in more:
                given, wanted = bytes(payload), "messages" in more
                body = send_event(client, event, (path, state), environ, given, messages=wanted)
        except OverdueError:
            pass
        if spoolable and not body:
            _signal.setitimer(_signal.ITIMER_REAL, SPOOL_SECONDS)
            try:  # noqa: SIM105 - contextlib would be one more import
                write_to_spool(state, client, event, environ, bytes(payload))
            except OSError:  # a full disk: what can still be done is to start
                pass
        _signal.setitimer(_signal.ITIMER_REAL, 0)  # printing and starting are never interrupted
        if body is None:
            posix.chdir("/")  # the daemon must not keep the user's directory busy
            start_daemon(state, environ, time.time())
        _print(result_of(body or b""))
    finally:
        posix._exit(0)  # noqa: SLF001 - drops any exception, unprinted, and skips the clean-up


if __name__ == "__main__":  # pragma: no cover - run as a process
    main()
