"""Run ``memd gateway``, which serves in the foreground until SIGTERM or SIGINT."""

import argparse
import os
import secrets
import signal
import socket
import sys
import tomllib
from collections.abc import Sequence

import anyio
from anyio.abc import SocketListener, SocketStream

from memd.client.launch import connect
from memd.core.errors import MemdError
from memd.core.options import Layer
from memd.core.places import Places, find
from memd.core.settings import parse
from memd.gateway.connection import Entrance, GatewayConnection
from memd.gateway.rewriting import READERS, Rewriter
from memd.gateway.upstream import Upstream, upstream

CONNECTIONS = 256  # at the same time
_PAUSE_SECONDS = 0.1  # after a connection could not be accepted
_SECRET_BYTES = 16
_HOST = "127.0.0.1"
_PORTS = 65_536
_DESCRIPTION = """\
Serve as the base URL of a program that speaks the Messages API and knows nothing of memd. Large
results of tools are stored as they first pass, and their beginning is sent, which says where the
whole is; all else goes to the upstream, and back, as it is.

The base URL is printed on standard output once the gateway listens. It holds a secret that is new
each time: who has it can use the gateway, but not without credentials of their own, which pass
through and are neither logged nor stored.
"""
_EPILOG = """\
examples:
  memd gateway --port 8377
  ANTHROPIC_BASE_URL=http://127.0.0.1:8377/... agent

A request is changed only where it is a POST of /v1/messages or /v1/messages/count_tokens that
offers the model a tool that reads files: {readers}, or one that --reader names. Requests of Claude
Code, which stores results itself, pass as they are.

Ends with status 0 on SIGTERM and SIGINT, and its connections with it; 2 for wrong arguments; 1
where the port is taken. Without a daemon everything passes as it is.

See also: docs/gateway.md, memctl context.
"""


def main(arguments: Sequence[str]) -> int:
    """Run the gateway and return its exit status."""
    option_parser = parser()
    options = option_parser.parse_args(arguments)
    if options.port not in range(_PORTS):
        option_parser.error(f"a port is below {_PORTS}")
    if not os.path.isdir(options.cwd):
        option_parser.error(f"--cwd {options.cwd} is no folder")
    places = find(os.environ, os.path.expanduser("~"))
    try:
        address = upstream(options.upstream or _configured_upstream(places))
    except MemdError as error:
        return _write_error(error.sentence, error.exit_status)
    try:
        connect(places, os.environ, name="gateway", start=False).close()
    except MemdError as error:
        _write_error(f"{error.sentence}; until one runs, requests pass as they are")
    readers = READERS.union(options.reader)
    cwd = os.path.abspath(options.cwd)
    rewriter = Rewriter(places.socket, cwd, readers, manage=options.manage)
    try:
        anyio.run(_serve, options.port, address, rewriter)
    except OSError as error:
        return _write_error(f"port {options.port} cannot be listened at: {error}", 1)
    return 0


async def _serve(port: int, address: Upstream, rewriter: Rewriter) -> None:
    """Serve until SIGTERM or SIGINT. Raises OSError if the port cannot be listened at."""
    # Only this address: other machines must not even get to try the secret.
    server = socket.create_server((_HOST, port), backlog=CONNECTIONS)
    port = server.getsockname()[1]
    listener = await SocketListener.from_socket(server)
    secret = secrets.token_hex(_SECRET_BYTES)
    entrance = Entrance(port, secret)
    slots = anyio.Semaphore(CONNECTIONS)

    async def serve(client: SocketStream) -> None:
        """Serve one connection and free its slot; an error ends only this connection."""
        try:
            await GatewayConnection(client, entrance, address, rewriter).serve()
        except Exception as error:  # noqa: BLE001 - the edge: it must not end the others
            _write_error(f"a connection ended with {type(error).__name__}")
        finally:
            slots.release()

    async def accept() -> None:
        """Accept connections for ever, up to ``CONNECTIONS`` at the same time."""
        while True:
            await slots.acquire()
            try:
                group.start_soon(serve, await listener.accept())
            except (anyio.BrokenResourceError, OSError):  # no descriptors are left, for a moment
                slots.release()
                await anyio.sleep(_PAUSE_SECONDS)

    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async with listener, anyio.create_task_group() as group:
            group.start_soon(accept)
            sys.stdout.write(f"http://{_HOST}:{port}/{secret}\n")
            sys.stdout.flush()
            async for _ in signals:
                group.cancel_scope.cancel()
                break


def _configured_upstream(places: Places) -> str:
    """Return the upstream in the user's settings; the default if others may write that file."""
    try:
        with open(places.config, "rb") as file:
            facts = os.fstat(file.fileno())
            is_foreign = facts.st_uid not in {os.getuid(), 0}
            others_may_write = is_foreign or facts.st_mode & 0o022
            options = {} if others_may_write else tomllib.load(file)
    except (OSError, ValueError, RecursionError):
        options = {}
    settings, _ = parse([Layer(places.config, options)])
    return settings.gateway.upstream


def _write_error(sentence: str, status: int = 0) -> int:
    """Write a sentence to standard error and return the exit status."""
    sys.stderr.write(f"memd gateway: {sentence}\n")
    return status


def parser() -> argparse.ArgumentParser:
    """Return the parser of the options."""
    result = argparse.ArgumentParser(
        "memd gateway",
        description=_DESCRIPTION,
        epilog=_EPILOG.format(readers=", ".join(sorted(READERS))),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = result.add_argument
    add("--port", type=int, default=0, help="port to listen at; default: any that is free")
    add(
        "--upstream",
        metavar="URL",
        default="",
        help="where requests go, https or this machine; default: the setting gateway.upstream",
    )
    add(
        "--cwd",
        metavar="FOLDER",
        default=".",
        help="the project that the conversations belong to; default: the working directory",
    )
    add(
        "--reader",
        metavar="NAME",
        action="append",
        default=[],
        help="a tool of the program that reads any file of yours by its absolute path; may be "
        "given more than once",
    )
    add(
        "--manage",
        action="store_true",
        help="let the API clear old results: adds context_management to requests without one",
    )
    return result
