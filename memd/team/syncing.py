"""Run one sync of one directory: resend a batch without an answer, pull, and push. Blocks."""

from collections.abc import Collection

from memd.base.names import TEAM
from memd.team import pausing
from memd.team.exchange import Exchange
from memd.team.pulling import pull
from memd.team.pushing import push as push_changes
from memd.team.pushing import resend


def sync(
    exchange: Exchange, *, push: bool, requested: bool = False, changed: Collection[str] = ()
) -> None:
    """Pull, and with ``push`` send the changes here; nothing is done if the sync is paused.

    A person's ``requested`` sync ignores a pause, and a requested push ends it. So does a deleted
    file among the ``changed`` paths. Raises Unavailable, Refused, and errors of
    the store and the state file.
    """
    deleted = [path for path in changed if path.startswith(TEAM)]
    if exchange.state.paused and deleted:
        local = exchange.local()
        deleted = [path for path in deleted if path.removeprefix(TEAM) not in local]
    if (requested and push) or (exchange.state.paused and deleted):
        exchange.save(pausing.resumed(exchange.state))
    now, credentials = exchange.ports.now(), exchange.credentials
    if not requested and not pausing.may_pull(exchange.state, now, credentials):
        return
    if requested:  # entries that were left out may be writable now, so try all again
        exchange.pull_all = bool(exchange.table.left_out(exchange.directory))
    batch = exchange.table.batch(exchange.directory)
    if batch is not None and not exchange.state.waits:
        resend(exchange, batch)
    if exchange.state.waits:  # a person has to accept the server first
        return
    pull(exchange)
    allowed = requested or pausing.may_push(exchange.state, now, credentials)
    if push and allowed and not exchange.state.waits:
        push_changes(exchange)
