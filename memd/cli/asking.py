"""Questions to the person on the terminal: yes or no, and input that is not echoed."""

import termios
from contextlib import suppress

from memd.cli.invocation import Invocation


def can_ask(invocation: Invocation) -> bool:
    """Return whether a question can be asked: on a terminal, without --quiet and --json."""
    return invocation.surroundings.stdin.isatty() and invocation.screen.live


def person_agrees(invocation: Invocation, question: str) -> bool:
    """Return whether the person answers yes; ``False`` if no question can be asked."""
    if not can_ask(invocation):
        return False
    return _read_line(invocation, f"{question} [y/N] ").lower() in {"y", "yes"}


def read_secret(invocation: Invocation, prompt: str) -> str:
    """Return a line typed without echo, or "" if no question can be asked."""
    if not can_ask(invocation):
        return ""
    old_modes = None
    with suppress(OSError, termios.error):  # raised if stdin has no terminal modes
        descriptor = invocation.surroundings.stdin.fileno()
        old_modes = termios.tcgetattr(descriptor)
        local_flags = old_modes[3]
        no_echo = [*old_modes[:3], local_flags & ~termios.ECHO, *old_modes[4:]]
        termios.tcsetattr(descriptor, termios.TCSADRAIN, no_echo)
    try:
        return _read_line(invocation, prompt)
    finally:
        if old_modes is not None:
            termios.tcsetattr(descriptor, termios.TCSADRAIN, old_modes)
            invocation.surroundings.stderr.write(
                "\n"
            )  # the Enter of the person was not echoed either


def _read_line(invocation: Invocation, prompt: str) -> str:
    """Print a prompt on standard error and return the line that the person types."""
    invocation.surroundings.stderr.write(prompt)
    invocation.surroundings.stderr.flush()
    return invocation.surroundings.stdin.readline().strip()
