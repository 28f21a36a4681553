"""What tests of extraction share: what is said in a project, and what became of it."""

from typing import Any, NamedTuple

from tests.net.kit import Project


class Kept(NamedTuple):
    """What memd made of what was said: bodies of memories, words of suggestions, its answer."""

    saved: str
    suggested: list[str]
    answer: dict[str, Any]

    @property
    def words(self) -> str:
        """All of it, saved and suggested."""
        return "\n".join([self.saved, *self.suggested])


def messages(*said: str) -> list[dict[str, Any]]:
    """Return what a person said, each followed by a reply."""
    pairs = [
        ({"role": "user", "content": s}, {"role": "assistant", "content": "Ok."}) for s in said
    ]
    return [message for pair in pairs for message in pair]


def extract(project: Project, *said: str, session: str = "s1", **more: Any) -> dict[str, Any]:
    """Extract from what a person said and wait for the result."""
    given = {"session_id": session, "wait": True, **more}
    if said:
        given["messages"] = messages(*said)
    answer: dict[str, Any] = project.call("extract", **given)
    return answer


def suggestions(project: Project) -> list[str]:
    """Return the words of each open suggestion."""
    return [item["text"] for item in _items(project)]


def dismiss(project: Project) -> None:
    """Dismiss each open suggestion, as the person."""
    for item in _items(project):
        project.call("review.decide", id=item["id"], choice="dismiss")


def _items(project: Project) -> list[dict[str, Any]]:
    return list(project.call("review.list", kind="suggestion")["items"])


def keep(project: Project, *said: str) -> Kept:
    """Extract from what a person said; return what became of it."""
    answer = extract(project, *said)
    tree = {path: words for path, words in project.tree().items() if path != "MEMORY.md"}
    return Kept("\n".join(tree.values()), suggestions(project), answer)


def memory(name: str, body: str, kind: str = "project", said: str = "") -> str:
    """Return a memory as a model writes it, with a quotation of the person where one is given."""
    head = f"---\nname: {name}\ndescription: about {name}\ntype: {kind}\n---\n\n"
    return head + body + (f'\n\n**Said:** "{said}"' if said else "") + "\n"
