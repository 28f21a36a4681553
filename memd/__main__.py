"""memd in the foreground: ``memd`` or ``memd serve`` until SIGTERM."""

import gc
import os
import sys

USAGE = """usage: memd [serve]
       memd check

Serve this user's memories on one Unix socket until SIGTERM. If another memd serves already,
say which one and end with status 0. The environment decides where things lie: MEMD_SOCKET,
MEMD_STATE_DIR, MEMD_CONFIG, MEMD_BASE_DIR. memctl(1) is the command line.
memd check says whether memd could start here, and starts nothing: 0 if it could.

  -h, --help     show this text
  --version      show the version
"""


def main(arguments: list[str] | None = None) -> int:
    """Run the program and return its exit status (0 done, 2 usage, others as documented)."""
    given = sys.argv[1:] if arguments is None else arguments
    if given in (["-h"], ["--help"]):
        sys.stdout.write(USAGE)
        return 0
    if given == ["--version"]:
        from memd import __version__  # noqa: PLC0415 - only this flag needs it

        sys.stdout.write(f"memd {__version__}\n")
        return 0
    if given[:1] == ["gateway"]:
        from memd.base.gone import GATEWAY  # noqa: PLC0415 - only this word needs it

        sys.stderr.write(f"memd: gateway is gone\n  {GATEWAY}\n")
        return 2
    test_clock: str | None = None
    if given[:2] == ["serve", "--test-clock"]:  # hidden: only tests use it
        test_clock, given = given[-1], ["serve"]
    if given not in ([], ["serve"], ["check"]):
        sys.stderr.write(USAGE)
        return 2
    # What 800 modules make is not garbage: looking through it is a fifth of the start, and would be
    # done again in every full collection.
    gc.disable()
    from memd.daemon.start import check, start  # noqa: PLC0415 - the flags above answer at once

    gc.freeze()
    gc.enable()

    environ = dict(os.environ)
    return check(environ) if given == ["check"] else start(environ, test_clock)


if __name__ == "__main__":
    sys.exit(main())
