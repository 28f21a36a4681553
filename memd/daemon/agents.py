"""Builds the mailboxes and the progress lines of agents from the daemon's parts."""

import threading

from memd.base.clock import Clock
from memd.base.events import AGENT_PROGRESS
from memd.daemon import machine
from memd.messages.service import Messages, Register
from memd.methods.callers import Callers
from memd.model.configured import Models
from memd.progress.service import AgentSource, ProgressLines
from memd.projects.configuration import Configuration
from memd.rpc.server import Hub
from memd.state.database import Database
from memd.state.docs import Docs
from memd.state.messages import MessageTable


def messages(
    database: Database,
    clock: Clock,
    hub: Hub,
    configuration: Configuration,
    socket: str,
    *,
    callers: Callers,
) -> Messages:
    """Return the mailboxes of all agents, whose register ``callers`` gets."""
    register = Register(Docs(database), machine.process, clock.now, clock.monotonic)
    mailboxes = Messages(
        register,
        MessageTable(database),
        clock,
        hub,
        settings=lambda root: configuration.current(root)[0],
        callers=callers,
        socket=socket,
    )
    callers.has_agent = mailboxes.has_agent
    return mailboxes


def progress_lines(
    source: AgentSource, clock: Clock, models: Models, hub: Hub, configuration: Configuration
) -> ProgressLines:
    """Return the publisher of sub-agents' progress to subscribers."""
    return ProgressLines(
        source,
        clock,
        models,
        hub,
        listening=lambda: hub.listening(AGENT_PROGRESS),
        settings=lambda root: configuration.current(root)[0],
        make_lock=threading.Lock,
    )
