"""session start|compacted|end: the life of a client's session, for clients that are scripts."""

from memd.cli.invocation import Invocation


def start(invocation: Invocation) -> None:
    """Tell that a session begins."""
    _tell(invocation, "session.start")


def compacted(invocation: Invocation) -> None:
    """Tell that a session dropped what it had read."""
    _tell(invocation, "session.compacted")


def end(invocation: Invocation) -> None:
    """Tell that a session is over."""
    _tell(invocation, "session.end")


def _tell(invocation: Invocation, method: str) -> None:
    done = invocation.ask(method, session_id=invocation.options.session)
    invocation.screen.answer(done, "")
