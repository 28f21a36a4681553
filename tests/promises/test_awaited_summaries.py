"""A summary is made for who waits for it, and costs nothing when nobody does."""

import threading
from contextlib import suppress
from pathlib import Path

from memd.client.blocking import Client
from memd.client.errors import DaemonUnavailableError
from memd.testing.daemon import client, daemon_process, throw_away_home
from memd.testing.messages import Hang, messages_server, text
from tests.promises.test_compaction import SUMMARY, talk


def test_a_daemon_that_is_started_anew_makes_no_summary_for_nobody() -> None:
    """What the one before was at ends without a request."""
    with throw_away_home() as home, messages_server(Hang(text(SUMMARY))) as server:
        config = Path(home.places.config)
        config.parent.mkdir(parents=True)
        config.write_text(f'[model]\nbase_url = "{server.url}"\n')
        config.chmod(0o600)
        params = {"cwd": home.project(), "session_id": "s", "messages": talk()}

        def ask() -> None:
            with suppress(DaemonUnavailableError), Client(home.places.socket, name="t") as asking:
                asking.call("context.compact", {**params, "strategy": "model"}, 60)

        with daemon_process(home) as process:
            asked = threading.Thread(target=ask)
            asked.start()
            assert server.wait_for(1)
            process.kill()
            asked.join()
        with daemon_process(home), client(home) as later:
            (job,) = later.call("job.list")["jobs"]
            ended = later.call("job.wait", {"job": job["job"]}, 20)
        assert ended["result"]["failure"]["kind"] == "summary_failed"
        assert len(server.messages) == 1
