"""Questions to the person on the terminal: yes or no, and what nobody shall see."""

import termios
from contextlib import suppress

from memd.cli.invocation import Invocation


def present(invocation: Invocation) -> bool:
    """Say whether somebody is on the terminal to be asked."""
    return invocation.around.stdin.isatty() and invocation.screen.live


def agreed(invocation: Invocation, question: str) -> bool:
    """Return whether the person on the terminal says yes; nobody there, no."""
    if not present(invocation):
        return False
    return _answer(invocation, f"{question} [y/N] ").lower() in {"y", "yes"}


def secret(invocation: Invocation, prompt: str) -> str:
    """Return what the person types, which the terminal does not show; "" where nobody is there."""
    if not present(invocation):
        return ""
    shown = None
    with suppress(OSError, termios.error):  # no terminal of the system's
        number = invocation.around.stdin.fileno()
        shown = termios.tcgetattr(number)
        hidden = [*shown[:3], shown[3] & ~termios.ECHO, *shown[4:]]
        termios.tcsetattr(number, termios.TCSADRAIN, hidden)
    try:
        return _answer(invocation, prompt)
    finally:
        if shown is not None:
            termios.tcsetattr(number, termios.TCSADRAIN, shown)
            invocation.around.stderr.write("\n")


def _answer(invocation: Invocation, prompt: str) -> str:
    invocation.around.stderr.write(prompt)
    invocation.around.stderr.flush()
    return invocation.around.stdin.readline().strip()
