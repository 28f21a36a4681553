"""The entry point of memctl. ``--version``, ``hook`` and ``mcp`` do not load the parser.

Rules of this file
- ``memctl hook`` never ends with another status than 0, not even for a wrong command line: a
  client takes 2 for an order to block its user's prompt.
"""

import sys

from memd import __version__

TYPE_CHECKING = False  # typing would be one more import, and collections.abc two
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: "Sequence[str] | None" = None) -> int:
    """Run memctl as a process and return its exit status."""
    words = [*(sys.argv[1:] if arguments is None else arguments)]
    if words == ["--version"]:
        print(f"memctl {__version__}")
        return 0
    if words[:1] == ["hook"] and not {"-h", "--help"} & {*words}:
        from memd.cli import hook  # noqa: PLC0415 - the hot path loads nothing else

        sys.argv[1:] = words[1:]
        hook.main()
        return 0
    if words == ["mcp"]:
        from memd.cli import mcp  # noqa: PLC0415 - clients wait for its first answer

        if mcp.main():
            return 0
    import gc  # noqa: PLC0415 - not needed above

    gc.set_threshold(100_000)  # most commands end before there is anything to collect
    from memd.cli.running import start  # noqa: PLC0415 - not needed above

    return start(words)
