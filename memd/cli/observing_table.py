"""The commands that show what the daemon is doing."""

from memd.cli.grammar import Command

COMMANDS = (
    Command(
        ("metrics",),
        "print the daemon in numbers",
        "Latencies by method, errors, caches, extractions, what was surfaced, suggestions, sizes, "
        "jobs, spending and the process, as OpenMetrics text for Prometheus and its relatives. "
        "Labels are names of memd: no text, path or session is among them. Counters begin with "
        "the daemon.",
        "observing:metrics",
        method="metrics",
        examples=(
            ("memctl metrics > DIR/memd.prom", "for the textfile collector of node_exporter"),
        ),
    ),
)
