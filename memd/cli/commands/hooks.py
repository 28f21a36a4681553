"""hook: the file that clients run directly, from memctl."""

import sys
from collections.abc import Sequence

from memd.cli.invocation import Invocation


def hook(arguments: Sequence[str] | Invocation) -> int:  # pragma: no cover - leaves by _exit
    """Serve one event in the place of this process; never returns in practice.

    The file leaves with status 0 whatever happens, so no exit status comes from here.
    """
    from memd.cli import hook as file  # noqa: PLC0415 - imports posix, which a help text can do without

    if isinstance(arguments, Invocation):
        arguments = [arguments.options.client, arguments.options.event]
    sys.argv[1:] = arguments
    file.main()
    return 0
