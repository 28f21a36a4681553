"""Every number that bounds something, each with where it comes from.

Sizes are bytes of UTF-8 and times are seconds unless the name says otherwise. Numbers that a user
may change are settings (``base/settings.py``), not limits.
"""

# A memory and its directory
MEMORY_BYTES = 64 * 1024  # what may be written through memd
LOG_BYTES = 256 * 1024  # of a daily log that counts
HEAD_LINES = 30  # a header is read from these; Claude Code's own stamping bound
FRONTMATTER_BYTES = 16 * 1024  # of the YAML
FRONTMATTER_DEPTH = 8  # levels of lists and tables in the YAML
FRONTMATTER_NODES = 512  # values in the YAML
INDEX_LINES = 200
INDEX_BYTES = 25_000
INDEX_LINE_CHARACTERS = 150  # that assistants are asked for
INDEX_HOOK_CHARACTERS = 200  # of a line that memd writes: a whole sentence
INDEX_ENTRIES = 1000  # with more memories only those that memd writes get a line in the index
MANIFEST_ENTRIES = 200  # lines of the list of memories that a model gets
DIRECTORIES = 1_000  # entries of a cache by directory
CHANGE_FILES = 500  # in one change set
IMPORT_FILES = 10_000  # memories of one import, in one change
READ_BYTES = 4 * 1024 * 1024  # a foreign file larger than this is listed, never loaded
STALE_DAYS = 2  # from this age on a memory is shown with a notice
LOOK_SECONDS = 0.1  # from a hint to the look at what others did: a save has ended by then
LOOK_SECONDS_MOST = 5.0  # between two looks at a file that a program keeps open
WRITER_SECONDS = 2.0  # a commit waits so long for a program that has the file open for writing
WRITER_POLL_SECONDS = 0.05  # between two checks of that
HOLD_SECONDS = 30.0  # a replaced file is kept so long where nobody can say who has it open

# Names
NAME_COMPONENTS = 4  # parts between the slashes
NAME_COMPONENT_CHARACTERS = 100  # of each part
NAME_BYTES = 255  # of all parts together

# Project slugs
SLUG_CHARACTERS = 200  # a longer one is cut and gets a hash

# Stored results of tools
RESULT_BYTES = 64 * 1024 * 1024  # of one result
SESSION_RESULT_BYTES = 512 * 1024 * 1024  # of all results of one session
STORED_BYTES = 4 * 1024 * 1024 * 1024  # of all sessions

# Recall
SURFACED_LINES = 200  # of one memory that comes with a prompt
SURFACED_BYTES = 4096  # of one memory that comes with a prompt
HOOK_CHARACTERS = 9_500  # Claude Code cuts injected context above 10,000 to a preview
HOOK_DEADLINE_MS = 2_500  # of a prompt that a model chooses for; clients give a hook 3 s
SUGGESTION_CHARACTERS = 600  # of these, for what was said and is not remembered
BLOCK_CHARACTERS = HOOK_CHARACTERS - SUGGESTION_CHARACTERS - 1  # for memories and instructions

# The socket
HEADER_BYTES = 8 * 1024  # of the lines before a frame's body
FRAME_BYTES = 4 * 1024 * 1024
JSON_DEPTH = 64  # levels of arrays and objects
BATCH_ITEMS = 100  # requests of one batch
REQUESTS_IN_FLIGHT = 32  # of one connection; a batch counts as one
CONNECTIONS = 128
CONNECTIONS_PER_PROCESS = 120  # below the whole: no process alone decides who else gets in
REPLY_QUEUE_BYTES = 4 * 1024 * 1024  # a connection with more unread answers is ended
READ_ON_BYTES = 16 * 1024  # a connection with more unread answers is not read from
KERNEL_BYTES = 32 * 1024  # of answers, before who does not read is noticed; the kernel doubles it
UNREAD_BYTES = 32 * 1024 * 1024  # answers that are not taken, of all connections together
TURNS = 4  # requests that are worked on at once; one interpreter does not do more any faster
TURNS_PER_PROCESS = 2
FRAME_SECONDS = 10.0  # from the first byte of a frame to its last
SOCKET_PATH_BYTES_LINUX = 107  # sun_path is 108 with its NUL
SOCKET_PATH_BYTES_MACOS = 103

# The log
LOG_LEVELS = ("debug", "info", "warning", "error")

# Jobs and shutdown
DRAIN_SECONDS = 60.0  # that jobs have to end when the daemon ends
ANSWER_SECONDS = 3.0  # that requests under way have at the end; most take a few milliseconds

# Failures of jobs
RETRY_SECONDS = 5.0  # before the second attempt
RETRY_GROWTH = 4.0  # each pause is so many times as long as the one before
BREAKER_AFTER = 3  # failures of a model in a row, by directory
BREAKER_SECONDS = 5 * 60.0  # the first pause without a model; it doubles with each failure
BREAKER_SECONDS_MOST = 4 * 60 * 60.0  # the longest pause

# Dream
LOCK_STALE_SECONDS = 60 * 60.0  # no setting: other programs that share the lock keep to it too
