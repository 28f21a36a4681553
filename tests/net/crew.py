"""Agents of a project that send each other messages through the socket."""

from typing import Any

from tests.net.kit import Project
from tests.net.wire import Client, Json


class Crew:
    """Agents of one project, each with its key; a name without a key is unregistered."""

    def __init__(self, project: Project, *names: str) -> None:
        self.project = project
        self.home = project.home
        self.keys: dict[str, str] = {}
        self._clients: dict[str, Client] = {}  # a lease ends with its connection
        for name in names:
            self.register(name)

    def register(self, name: str, **more: Json) -> str:
        """Register an agent; return its address."""
        given = {"name": name, "session_id": f"{self.project.path.name} {name}", **more}
        made = self.project.call("agent.register", **given)
        self.keys[name] = made["key"]
        return str(made["address"])

    def child(self, parent: str, name: str, **more: Json) -> str:
        """Register a child of an agent; return its address."""
        return self.register(name, parent=parent, key=self.keys[parent], **more)

    def send(self, sender: str, to: str, body: str = "text", **more: Json) -> Any:
        """Send a message."""
        who = {"key": self.keys[sender]} if sender in self.keys else {"cwd": self.project.cwd}
        return self.home.call("message.send", to=to, body=body, **who, **more)

    def received(self, name: str, **more: Json) -> Any:
        """Return the answer of ``message.receive`` on a connection that stays open."""
        if name not in self._clients:
            self._clients[name] = self.home.connect()
        return self._clients[name].call("message.receive", key=self.keys[name], **more)

    def hang_up(self, *names: str) -> None:
        """Close the connections of these agents, or of all."""
        for name in names or list(self._clients):
            if client := self._clients.pop(name, None):
                client.close()

    def receive(self, name: str, **more: Json) -> list[Json]:
        """Return the messages that an agent gets now."""
        return list(self.received(name, **more)["messages"])

    def bodies(self, name: str, **more: Json) -> list[str]:
        """Return the texts of these messages without notices of memd's."""
        return [row["body"] for row in self.receive(name, **more) if row["kind"] != "notice"]

    def notices(self, name: str, about: str) -> int:
        """Return how many notices an agent gets now about a message."""
        rows = self.receive(name)
        return sum(row["kind"] == "notice" and row["reply_to"] == about for row in rows)

    def ack(self, name: str, *ids: str) -> int:
        """Acknowledge messages; return how many that ended."""
        return int(self.home.call("message.ack", key=self.keys[name], ids=list(ids))["acked"])

    def state(self, message: str) -> str:
        """Return what became of a message."""
        (row,) = self.project.call("message.log", id=message)["messages"]
        return str(row["state"])

    def agents(self) -> dict[str, Json]:
        """Return the agents of the project by address."""
        return {row["address"]: row for row in self.project.call("agent.list")["agents"]}

    def held(self) -> list[Json]:
        """Return the messages that wait for the person."""
        return list(self.project.call("review.list", kind="message")["items"])

    def decide(self, message: str, *, accept: bool) -> str:
        """Decide a held message as the person; return its state."""
        choice = "accept" if accept else "refuse"
        return str(self.home.call("review.decide", id=message, choice=choice)["state"])
