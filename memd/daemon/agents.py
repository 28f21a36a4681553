"""Builds the mailboxes and the progress lines of agents from the daemon's parts."""

import threading

from memd.base.events import AGENT_PROGRESS
from memd.daemon import machine
from memd.daemon.core import Core
from memd.messages.service import Messages, Register
from memd.progress.service import ProgressLines
from memd.state.messages import MessageTable


def messages(core: Core) -> Messages:
    """Return the mailboxes of all agents, whose register the callers get."""
    clock = core.clock
    mailboxes = Messages(
        Register(core.docs, machine.process, clock.now, clock.monotonic),
        MessageTable(core.database),
        clock,
        core.hub,
        settings=core.settings_of,
        callers=core.callers,
        socket=core.places.socket,
    )
    core.callers.has_agent = mailboxes.register.has_process
    return mailboxes


def progress_lines(core: Core, source: Register) -> ProgressLines:
    """Return the publisher of sub-agents' progress to subscribers."""
    return ProgressLines(
        source,
        core.clock,
        core.models,
        core.hub,
        listening=lambda: core.hub.listening(AGENT_PROGRESS),
        settings=core.settings_of,
        make_lock=threading.Lock,
    )
