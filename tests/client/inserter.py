"""A process that inserts lines into one file through ``memory.tool``; it imports little."""

from memd.client.blocking import Client


def insert_many(socket: str, folder: str, writer: int, count: int) -> None:
    """Insert numbered lines at the second line of ``a.md``, each as one command."""
    command = {"command": "insert", "path": "/memories/a.md", "insert_line": 1}
    with Client(socket, name=f"writer-{writer}", environment={}) as client:
        for number in range(count):
            requested = {"cwd": folder, "command": command | {"insert_text": f"{writer}:{number}"}}
            answer = client.call("memory.tool", requested)
            assert not answer["is_error"], answer
