"""Have the service restarted under load, so many times; print what was done and what is wrong.

Run by the user whose service it is. The restarts are in turns those of memctl and those of the
service manager.
"""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from memd.base.places import find
from tests.soak.upgrading import Load
from tests.support.daemon import Home, memctl_command

ANEW = ("systemctl", "--user", "restart", "memd.service")
_PAUSES = (0.3, 1.0)  # a service that is started more than 40 times a minute is left alone


def main() -> None:
    """Restart under load."""
    rounds, path = int(sys.argv[1]), os.environ["HOME"]
    environ = dict(os.environ)
    home = Home(path, environ, find(environ, path))
    load, chance = Load(home, home.project()), random.Random(rounds)  # noqa: S311 - repeatable
    with load.running():
        for number in range(rounds):
            load.wait(chance.uniform(*_PAUSES))
            command = ANEW if number % 2 else memctl_command("restart")
            subprocess.run(command, env=environ, check=True, stdout=subprocess.DEVNULL)
            if load.failed:
                break
    json.dump({"wrong": load.lost(), "figures": load.figures()}, sys.stdout)


if __name__ == "__main__":
    main()
