"""One sync of one directory: resend what is unanswered, pull, push. Blocks."""

from collections.abc import Collection

from memd.core.names import TEAM
from memd.team import pausing
from memd.team.exchange import Exchange
from memd.team.pulling import pull
from memd.team.pushing import push as push_changes
from memd.team.pushing import resend


def sync(
    exchange: Exchange, *, push: bool, requested: bool = False, changed: Collection[str] = ()
) -> None:
    """Pull, and ``push`` what is to be sent; without being ``requested`` only if no pause is on.

    ``changed`` are paths of which others told; one that is gone ends a pause, as a person's push
    does. Raises TeamUnreachableError, TeamRefusedError, and what store and state file raise.
    """
    gone = [path for path in changed if path.startswith(TEAM)]
    if exchange.state.paused and gone:
        local = exchange.local()
        gone = [path for path in gone if path.removeprefix(TEAM) not in local]
    if (requested and push) or (exchange.state.paused and gone):
        exchange.save(pausing.resumed(exchange.state))
    now, credentials = exchange.ports.now(), exchange.credentials
    if not requested and not pausing.may_pull(exchange.state, now, credentials):
        return
    if requested:  # what was left out may come in by now: a link that stood there is gone
        exchange.everything = bool(exchange.table.left_out(exchange.directory))
    batch = exchange.table.batch(exchange.directory)
    if batch is not None and not exchange.state.waits:
        resend(exchange, batch)
    if exchange.state.waits:  # of which nothing is done, and no batch overtaken
        return
    pull(exchange)
    may = requested or pausing.may_push(exchange.state, now, credentials)
    if push and may and not exchange.state.waits:
        push_changes(exchange)
