/* The native hook: what hook.py does where a daemon answers, without starting Python.

   client/hook_file.py compiles this file, where the machine has a compiler, into the program
   "python" of the user's data directory. Clients run that name as `python -I -S hook.py <client>
   <event> [messages]`, so their lines are the same with and without the native hook. The link
   "interpreter" beside it is the Python that has memd.

   - It reads the payload, sends the request that hook.py sends, byte for byte, and prints the result
     unchanged; tests run the same cases over both and compare what they send.
   - What is rare it leaves to hook.py, which it runs in its own place with the payload that it has
     read: no daemon listens (hook.py starts one), nobody answered the end of a turn (hook.py
     writes it to the spool), HOME is not set. Anything but such a call goes to the interpreter too.
   - Whatever goes wrong, it prints nothing and the status is 0. Each buffer has a fixed size.
   - A timer that repeats ends each call that waits, so no wait outlives the deadline. */

#define _GNU_SOURCE        /* struct ucred */
#define _DARWIN_C_SOURCE   /* getpeereid */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    FRAME_BYTES = 4 * 1024 * 1024,
    HEADER_BYTES = 8 * 1024,
    PAYLOAD_BYTES = FRAME_BYTES - 64 * 1024,
    HEAD_BYTES = 256 * 1024, /* the request up to its payload: above, hook.py may try */
    PATH_BYTES = 4096,
    CHUNK_BYTES = 65536,
    CONNECT_MS = 50,
    SPOOL_MS = 1000,
    MIN_MS = 10,
    MAX_MS = 10000
};

static const char *const forwarded[] = {
    "MEMD_MEMORY_PATH", "CLAUDE_COWORK_MEMORY_PATH_OVERRIDE", "CLAUDE_CODE_REMOTE_MEMORY_DIR",
    "MEMD_BASE_DIR", "CLAUDE_CONFIG_DIR", "CLAUDE_PROJECT_DIR", "CODEX_HOME", "GEMINI_CLI_HOME",
    "MEMD_DISABLE", "CLAUDE_CODE_DISABLE_AUTO_MEMORY", "CLAUDE_CODE_SIMPLE", "CLAUDE_CODE_REMOTE",
    "CLAUDE_CODE_SESSION_ATTENDED", "DISABLE_COMPACT", "DISABLE_AUTO_COMPACT",
    "MEMD_CONTEXT_WINDOW", "MEMD_EXTRA_GUIDELINES", "CLAUDE_COWORK_MEMORY_EXTRA_GUIDELINES", NULL};
static const char *const prompt_events[] = {"UserPromptSubmit", "BeforeAgent", NULL};
static const char *const spooled_events[] = {"Stop", "PreCompact", "SessionEnd", "AfterAgent", NULL};
static const char answer_start[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":";
static const char printed_notice[] =
    "Content-Length: 41\r\n\r\n{\"jsonrpc\":\"2.0\",\"method\":\"hook.printed\"}";

/* The request is put together around the payload, which is read to its place: no copy is made. */
static char request[HEAD_BYTES + PAYLOAD_BYTES + CHUNK_BYTES + 8];
static char *const payload = request + HEAD_BYTES;
static size_t payload_bytes; /* as read: at most PAYLOAD_BYTES + CHUNK_BYTES */
static char head[HEAD_BYTES];
static size_t head_bytes;
static char answer[HEADER_BYTES + FRAME_BYTES];
static volatile sig_atomic_t overdue;

enum outcome { NO_DAEMON, NO_ANSWER, ANSWERED, FOR_PYTHON };

static int is_one_of(const char *name, const char *const *names) {
    for (; *names; names++)
        if (!strcmp(name, *names)) return 1;
    return 0;
}

static void note_overdue(int number) {
    (void)number;
    overdue = 1;
}

/* Begin to wait for so many ms, 0 for no wait. A signal that comes just before a call has begun
   would be lost, so it is repeated. */
static void set_timer(int ms) {
    struct itimerval timer = {{0, ms ? 2000 : 0}, {ms / 1000, ms % 1000 * 1000}};
    struct sigaction action;
    sigset_t alarms;
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    memset(&action, 0, sizeof action);
    action.sa_handler = note_overdue; /* without SA_RESTART: the call that waits ends */
    overdue = 0;
    sigaction(SIGALRM, &action, NULL);
    sigprocmask(SIG_UNBLOCK, &alarms, NULL); /* a client may start its hooks with all blocked */
    setitimer(ITIMER_REAL, &timer, NULL);
}

static int deadline_ms(const char *event) {
    const char *setting = getenv("MEMD_HOOK_DEADLINE_MS");
    if (setting && *setting && is_one_of(event, prompt_events) &&
        strspn(setting, "0123456789") == strlen(setting)) {
        unsigned long ms = strtoul(setting, NULL, 10);
        if (MIN_MS <= ms && ms <= MAX_MS) return (int)ms;
    }
    if (!strcmp(event, "SessionStart")) return 400;
    if (!strcmp(event, "PreCompact")) return 800;
    return is_one_of(event, spooled_events) ? 40 : 200;
}

static int is_space(char c) {
    return c == ' ' || ('\t' <= c && c <= '\r');
}

/* Read the payload until its end, its bound, the deadline, or the end of the object that it is. */
static void read_payload(void) {
    size_t depth = 0;
    int in_string = 0, escaped = 0, ended = 0, broken = 0;
    while (payload_bytes <= PAYLOAD_BYTES && !overdue) {
        ssize_t count = read(0, payload + payload_bytes, CHUNK_BYTES);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return;
        for (ssize_t i = 0; i < count; i++) {
            char c = payload[payload_bytes + (size_t)i];
            if (in_string) {
                in_string = escaped || c != '"';
                escaped = !escaped && c == '\\';
            } else if (c == '{' && !ended) {
                depth++;
            } else if (depth && c == '}') {
                ended = !--depth;
            } else if (depth) {
                in_string = c == '"';
            } else {
                broken |= !is_space(c); /* no object, or more than one: nothing ends it */
            }
        }
        payload_bytes += (size_t)count;
        if (ended && !broken) return;
    }
}

/* Add a text to the head; what does not fit makes head_bytes too large, and nothing is written. */
static void add(const char *text, size_t bytes) {
    if (head_bytes + bytes <= HEAD_BYTES) memcpy(head + head_bytes, text, bytes);
    head_bytes = bytes < HEAD_BYTES ? head_bytes + bytes : (size_t)2 * HEAD_BYTES;
}

static void add_text(const char *text) {
    add(text, strlen(text));
}

static void add_quoted(const char *text) {
    add("\"", 1);
    for (; *text && head_bytes <= HEAD_BYTES; text++) {
        char escape[8];
        if (*text == '"' || *text == '\\') {
            escape[0] = '\\', escape[1] = *text;
            add(escape, 2);
        } else if ((unsigned char)*text < 32) {
            snprintf(escape, sizeof escape, "\\u%04x", (unsigned)*text);
            add(escape, 6);
        } else {
            add(text, 1);
        }
    }
    add("\"", 1);
}

/* Put the request together and return its first byte, NULL if there is no room. */
static char *frame(const char *client, const char *event, int messages, size_t *bytes) {
    char *start = payload, *end = payload + payload_bytes, number[64];
    const char *comma = "";
    size_t length;
    while (start < end && is_space(*start)) start++;
    while (start < end && is_space(end[-1])) end--;
    if (end - start < 2 || *start != '{' || end[-1] != '}') {
        start = payload, end = payload + 4;
        memcpy(payload, "null", 4);
    }
    memcpy(end, "}}", 2);
    end += 2;
    add_text("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"hook\",\"params\":{");
    if (messages) add_text("\"messages\":true,");
    snprintf(number, sizeof number, "\"deadline_ms\":%d,\"client\":", deadline_ms(event));
    add_text(number);
    add_quoted(client);
    add_text(",\"event\":");
    add_quoted(event);
    add_text(",\"environment\":{");
    for (const char *const *name = forwarded; *name; name++) {
        const char *value = getenv(*name);
        if (!value) continue;
        add_text(comma);
        add_quoted(*name);
        add_text(":");
        add_quoted(value);
        comma = ",";
    }
    add_text("},\"payload\":");
    if (head_bytes > HEAD_BYTES - sizeof number) return NULL;
    length = head_bytes + (size_t)(end - start);
    snprintf(number, sizeof number, "Content-Length: %zu\r\n\r\n", length);
    start -= head_bytes;
    memcpy(start, head, head_bytes);
    start -= strlen(number);
    memcpy(start, number, strlen(number));
    *bytes = (size_t)(end - start);
    return start;
}

/* Write the daemon's socket path, empty if it would not fit. Returns 0 if hook.py has to find it. */
static int socket_path(char *path, size_t room) {
    const char *named = getenv("MEMD_SOCKET"), *state = getenv("MEMD_STATE_DIR");
    const char *home = getenv("HOME"), *runtime = NULL, *xdg = NULL, *below = "/memd";
    char folder[PATH_BYTES];
    int bytes;
#ifdef __APPLE__
    const char *inside = "/Library/Application Support/memd";
#else
    const char *inside = "/.local/state/memd";
    runtime = getenv("XDG_RUNTIME_DIR");
    xdg = getenv("XDG_STATE_HOME");
#endif
    if (!home) return 0;
    if (named && *named) {
        bytes = snprintf(path, room, "%s", named);
    } else if (runtime && *runtime == '/' && strspn(runtime, "/") < strlen(runtime)) {
        size_t length = strlen(runtime);
        while (runtime[length - 1] == '/') length--;
        if (length > PATH_BYTES) length = PATH_BYTES;
        bytes = snprintf(path, room, "%.*s/memd/memd.sock", (int)length, runtime);
    } else {
        size_t length;
        if (state && *state)
            below = "";
        else if (xdg && *xdg == '/')
            state = xdg;
        else
            state = home, below = inside;
        length = strlen(state);
        if (length >= sizeof folder) length = sizeof folder - 1;
        memcpy(folder, state, length);
        /* A path in MEMD_STATE_DIR stays as it is; "/" as HOME stays too. */
        while (*below && length && folder[length - 1] == '/') length--;
        if (!length && state == home) folder[length++] = '/';
        folder[length] = 0;
        bytes = snprintf(path, room, "%s%s/run/memd.sock", folder, below);
    }
    if (bytes < 0 || (size_t)bytes >= room) *path = 0;
    return 1;
}

/* Return whether a file is of this kind, owned by the user and closed to others; -1 with errno. */
static int is_private(const char *path, mode_t kind) {
    struct stat status;
    if (lstat(path, &status)) return -1;
    return status.st_uid == geteuid() && (status.st_mode & (S_IFMT | 077)) == kind;
}

static int is_own_peer(int sock) {
#ifdef __linux__
    struct ucred peer;
    socklen_t size = sizeof peer;
    return !getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &size) && peer.uid == geteuid();
#else
    uid_t user;
    gid_t group;
    return !getpeereid(sock, &user, &group) && user == geteuid();
#endif
}

/* Connect to the daemon, and send nothing yet. */
static enum outcome connect_daemon(const char *path, int *sock) {
    struct sockaddr_un address;
    struct timeval wait = {0, CONNECT_MS * 1000};
    char folder[sizeof address.sun_path];
    char *slash;
    int private;
    memset(&address, 0, sizeof address);
    address.sun_family = AF_UNIX;
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    snprintf(folder, sizeof folder, "%s", path);
    slash = strrchr(folder, '/');
    if (slash) *slash = 0;
    private = is_private(slash && *folder ? folder : ".", S_IFDIR);
    if (private > 0) private = is_private(path, S_IFSOCK);
    if (private < 0) return errno == ENOENT ? NO_DAEMON : NO_ANSWER;
    if (!private) return NO_ANSWER;
    *sock = socket(AF_UNIX, SOCK_STREAM, 0);
    if (*sock < 0) return NO_ANSWER;
    fcntl(*sock, F_SETFD, FD_CLOEXEC); /* a daemon that hook.py starts must not keep it */
    setsockopt(*sock, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
    if (connect(*sock, (struct sockaddr *)&address, sizeof address))
        return errno == ECONNREFUSED || errno == ENOENT ? NO_DAEMON : NO_ANSWER;
    /* The names may have been exchanged since: what counts is who listens at this connection. */
    if (!is_own_peer(*sock)) return NO_ANSWER;
    return ANSWERED;
}

static int write_all(int file, const char *text, size_t bytes) {
    while (bytes) {
        ssize_t count = write(file, text, bytes);
        if (count > 0) {
            text += count, bytes -= (size_t)count;
        } else if (overdue || !(count < 0 && errno == EINTR)) {
            return 0;
        }
    }
    return 1;
}

/* Read until the answer has more than `known` bytes. Returns 0 at its end or the deadline. */
static int read_more(int sock, size_t *known) {
    while (!overdue && *known < sizeof answer) {
        ssize_t count = read(sock, answer + *known, sizeof answer - *known);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return 0;
        *known += (size_t)count;
        return 1;
    }
    return 0;
}

/* Receive one frame and return its body, NULL if it is cut, too large or without a length. */
static char *receive(int sock, size_t *bytes) {
    static const char name[] = "content-length:";
    size_t known = 0, start, length = 0;
    char *end, *digit = answer + sizeof name - 1;
    do {
        if (known > HEADER_BYTES || !read_more(sock, &known)) return NULL;
        end = memmem(answer, known, "\r\n\r\n", 4);
    } while (!end);
    if (digit >= end || strncasecmp(answer, name, sizeof name - 1)) return NULL;
    while (digit < end && *digit == ' ') digit++;
    for (; digit < end && '0' <= *digit && *digit <= '9' && length <= FRAME_BYTES; digit++)
        length = 10 * length + (size_t)(*digit - '0');
    start = (size_t)(end - answer) + 4;
    if (digit != end || length > FRAME_BYTES || start + length > sizeof answer) return NULL;
    while (known < start + length)
        if (!read_more(sock, &known)) return NULL;
    *bytes = length;
    return answer + start;
}

/* Send the event and print the result. */
static enum outcome serve(const char *client, const char *event, int messages) {
    char path[sizeof((struct sockaddr_un *)NULL)->sun_path], *first, *body;
    enum outcome outcome;
    size_t bytes = 0, start = sizeof answer_start - 1;
    struct timeval none = {0, 0}, wait = {0, CONNECT_MS * 1000};
    int sock = -1;
    if (!socket_path(path, sizeof path)) return FOR_PYTHON;
    if (!*path || payload_bytes > PAYLOAD_BYTES || overdue) return NO_ANSWER;
    outcome = connect_daemon(path, &sock);
    if (outcome != ANSWERED) return outcome;
    first = frame(client, event, messages, &bytes);
    if (!first) return FOR_PYTHON;
    setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &none, sizeof none);
    if (!write_all(sock, first, bytes)) return NO_ANSWER;
    body = receive(sock, &bytes);
    if (!body || !bytes) return NO_ANSWER;
    set_timer(0); /* printing is never interrupted */
    if (bytes <= start || memcmp(body, answer_start, start) || body[bytes - 1] != '}')
        return ANSWERED; /* an error: nothing is printed */
    body += start, bytes -= start + 1;
    if (!bytes || (bytes == 4 && !memcmp(body, "null", 4))) return ANSWERED;
    if (write_all(1, body, bytes) && messages) {
        setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
        write_all(sock, printed_notice, sizeof printed_notice - 1);
    }
    return ANSWERED;
}

/* Make a pipe with the payload the standard input, written by a child of this process. */
static int give_payload(void) {
    int ends[2];
    if (pipe(ends)) return 0;
    switch (fork()) {
    case -1:
        return 0;
    case 0:
        close(0), close(1), close(2), close(ends[0]);
        set_timer(2 * SPOOL_MS);
        write_all(ends[1], payload, payload_bytes);
        _exit(0);
    default:
        close(ends[1]);
        return dup2(ends[0], 0) == 0 && !close(ends[0]);
    }
}

/* Run the interpreter beside the hook file in the place of this program. Does not return. */
static void run_python(const char *file, char **argv) {
    char program[PATH_BYTES];
    const char *slash = strrchr(file, '/');
    int bytes = slash ? (int)(slash - file) : 0;
    set_timer(0);
    bytes = snprintf(program, sizeof program, "%.*s%s", bytes, file, slash ? "/interpreter" : "");
    if (slash && bytes > 0 && (size_t)bytes < sizeof program) {
        argv[0] = program;
        execv(program, argv);
    }
#ifndef __APPLE__ /* there python3 may open a dialog that offers to install it */
    argv[0] = (char *)"python3"; /* it logs how to remove the hook */
    execvp(argv[0], argv);
#endif
    _exit(0);
}

int main(int argc, char **argv) {
    static char unanswered[] = "unanswered";
    char *call[9] = {NULL};
    enum outcome outcome;
    int messages, spooled;
    if (argc < 1) _exit(0);
    for (int file = 0; file < 3; file++) /* or a socket would get the number of standard output */
        if (fcntl(file, F_GETFD) < 0 && open("/dev/null", O_RDWR) != file) _exit(0);
    if (argc < 6 || argc > 7 || strcmp(argv[1], "-I") || strcmp(argv[2], "-S"))
        run_python(argv[0], argv);
    if (getenv("MEMD_MODEL_RUN")) _exit(0);
    signal(SIGPIPE, SIG_IGN);
    messages = argc == 7 && !strcmp(argv[6], "messages");
    spooled = is_one_of(argv[5], spooled_events);
    set_timer(spooled ? SPOOL_MS : deadline_ms(argv[5]));
    read_payload();
    if (spooled && !overdue) set_timer(deadline_ms(argv[5]));
    outcome = serve(argv[4], argv[5], messages);
    set_timer(0);
    if (outcome == ANSWERED || (outcome == NO_ANSWER && !spooled)) _exit(0);
    memcpy(call, argv, (size_t)argc * sizeof *argv);
    if (outcome == NO_ANSWER) call[argc] = unanswered;
    if (give_payload()) run_python(argv[3], call);
    _exit(0);
}
