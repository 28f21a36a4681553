"""The table of the commands that show what the daemon is doing: events and metrics."""

from memd.cli.grammar import Command, Option, number, seconds

COMMANDS = (
    Command(
        ("top",),
        "show what the daemon does, live",
        "Requests a second by method with the times that half of them and 99 of 100 took, errors, "
        "running jobs, the last sessions, what was spent today and the daemon's size, anew every "
        "two seconds until q is pressed; h shows the keys. Without a terminal --once prints it as "
        "text, --batch N prints it N times, and with --json each time is a JSON object on a line. "
        "The first picture is of the time since the daemon's start, the others of the time since "
        "the last.",
        "observing:live",
        method="",
        options=(
            Option("--every", "seconds between two looks (default: 2)", "SECONDS", seconds),
            Option("--once", "print one picture and end"),
            Option("--batch", "print so many pictures and end", "N", number),
        ),
        examples=(("memctl top --batch 2 --every 10", "what happens in ten seconds"),),
    ),
    Command(
        ("metrics",),
        "print the daemon in numbers",
        "Latencies by method, errors, caches, extractions, what was surfaced, suggestions, sizes, "
        "jobs, spending and the process, as OpenMetrics text for Prometheus and its relatives. "
        "Labels are names of memd: no text, path or session is among them. Counters begin with "
        "the daemon.",
        "observing:metrics",
        examples=(
            ("memctl metrics > DIR/memd.prom", "for the textfile collector of node_exporter"),
        ),
    ),
    Command(
        ("debug", "bundle"),
        "pack what helps to find a fault",
        "One .tar.gz that you alone can read: versions, settings, self-checks, status, metrics, "
        "rows and sizes, the end of the log, the service's files and which clients are connected. "
        "No memory, prompt, path, name, key or address is in it; it lists its parts and sends "
        "nothing. Without a daemon it has less.",
        "bundle:bundle",
        method="",
        options=(
            Option(
                "--output", "the file (default: memd-debug-DATE-TIME.tar.gz)", "FILE", short="-o"
            ),
        ),
        examples=(("memctl debug bundle -o fault.tar.gz", "and read it before you send it"),),
    ),
)
