"""What the fixed pass works on: the memories that it may change, and what keeps others as they are.

Rules of this file
- Only memories of a known type that parse, are UTF-8, within the size limit and without anything
  like a secret may change, and none that is shared with a team. The others are listed, each with
  the sentence that says why.
- A memory that something links to which the pass does not change is not merged into another one:
  a line that a person wrote into the index, a person's own rule, a file that has to stay.
"""

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from memd.core import limits
from memd.core.errors import MemdError
from memd.core.names import INDEX, TEAM, check_name
from memd.core.values import PERSONAL, MemoryFile, MemoryType, Tree
from memd.core.yielding import yield_to_requests
from memd.documents import document, secrets
from memd.documents.document import Document
from memd.dream import repair
from memd.dream.links import Linked, leads_to, targets
from memd.dream.shorten import pointers
from memd.dream.similarity import Prose
from memd.dream.values import LISTED, Left
from memd.dream.wording import words

DAMAGED = "its frontmatter does not parse"


@dataclass(frozen=True, slots=True)
class Memory:
    """A memory as the pass changes it: ``head`` is everything before the body.

    ``taken`` is what it has to say once it has taken others in: by path, its own text and theirs,
    their links led on like its own. ``pinned`` says that it keeps its own name.
    """

    file: MemoryFile
    type: MemoryType
    head: bytes
    description: str
    body: str
    mtime_ns: int
    text: Prose
    pinned: bool = False
    taken: tuple[tuple[str, Document], ...] = ()

    @property
    def path(self) -> str:
        """The path below the memory directory."""
        return self.file.header.path

    @property
    def named(self) -> Linked:
        """The memory as links name it."""
        return Linked(self.path, self.file.header.name)

    @property
    def content(self) -> bytes:
        """The bytes that the file would have."""
        return self.head + self.body.encode()

    @property
    def says(self) -> tuple[tuple[str, Document], ...]:
        """What it has to say, by path: ``taken`` or, before that, what stands in its file."""
        return self.taken or ((self.path, document.parse(self.file.content, self.path)),)

    @property
    def lasting(self) -> bool:
        """Whether it is a person's own rule."""
        return self.type in PERSONAL

    @property
    def rank(self) -> tuple[bool, int, int, str]:
        """What keeps its name first, then the richest; a second pass decides the same."""
        return (not self.pinned, -len(self.text.sentences), -len(self.text.words), self.path)

    def with_text(self, body: str) -> "Memory":
        """Return the memory with another body."""
        return replace(self, body=body, text=compared(body, self.description))


@dataclass(frozen=True, slots=True)
class Material:
    """The memories that may change, sentences on those that may not, and the index before."""

    memories: tuple[Memory, ...]
    listed: tuple[Left, ...]
    index: bytes | None


def compared(body: str, description: str) -> Prose:
    """Return what a memory is compared by: its text or, where it has none, its description."""
    return Prose(body) if words(body) else Prose(description)


def gather(tree: Tree, frozen: AbstractSet[str] = frozenset()) -> Material:
    """Return what may be changed in a memory directory; ``frozen`` paths stay as they are."""
    free: list[Memory] = []
    listed: list[Left] = []
    links: set[str] = set()
    for header in tree.headers():
        yield_to_requests()
        path = header.path
        memory, file, why = _read(tree, path)
        if why and not _is_team(path):
            listed.append(Left(path, why))
        if file is not None and (memory is None or memory.lasting or path in frozen):
            links |= targets(file.body, path)
        if memory is not None and path not in frozen:
            free.append(memory)
    before = tree.index()
    links |= targets(_said(before or b""), INDEX)
    pins = frozenset(links)
    memories = (replace(memory, pinned=leads_to(pins, memory.named)) for memory in free)
    return Material(tuple(memories), tuple(listed[:LISTED]), before)


def _is_team(path: str) -> bool:
    return path.startswith(TEAM)


def _read(tree: Tree, path: str) -> tuple[Memory | None, MemoryFile | None, str]:
    """Return a memory that may change, or why not; the file where there is one to read."""
    try:
        file = tree.read(path)
        if file is not None:
            check_name(path)
    except MemdError as error:
        return None, None, error.sentence
    if file is None or _is_team(path):
        return None, file, ""
    for fits, sentence in _CHECKS:
        if not fits(file):
            return None, file, sentence
    header = file.header
    if header.type is None:
        return None, file, _UNTYPED
    head = file.content[: len(file.content) - len(file.body.encode())]
    better = repair.mended(file.content)
    if better != file.content:
        head = better[: len(better) - len(file.body.encode())]
    why = repair.trouble(better)
    body, description = file.body, header.description
    text = compared(body, description)
    memory = Memory(file, header.type, head, description, body, header.mtime_ns, text)
    return memory, file, f"other programs cannot read its frontmatter: {why}" if why else ""


def _said(content: bytes) -> str:
    """Return the index without what its pointers point to: the lines of people, and hooks."""
    lines = content.decode(errors="replace").splitlines()
    for entry in pointers(content):
        lines[entry.line] = entry.hook
    return "\n".join(lines)


def _is_text(file: MemoryFile) -> bool:
    try:
        file.content.decode()
    except UnicodeDecodeError:
        return False
    return file.content.endswith(file.body.encode())


def _is_sound(file: MemoryFile) -> bool:
    return not document.parse(file.content, file.header.path).damaged


def _is_small(file: MemoryFile) -> bool:
    return len(file.content) <= limits.MEMORY_BYTES


def _is_harmless(file: MemoryFile) -> bool:
    return not secrets.find(file.content.decode())


_UNTYPED = f"its type is none of {', '.join(MemoryType)}"
_CHECKS: Sequence[tuple[Callable[[MemoryFile], bool], str]] = (
    (_is_small, f"it is larger than {limits.MEMORY_BYTES} bytes"),
    (_is_sound, DAMAGED),
    (_is_text, "it is not UTF-8"),
    (_is_harmless, "it holds what looks like a credential"),
)
