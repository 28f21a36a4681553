"""Which files Claude Code loads, in its order; a later one counts more. Pure.

Order: the machine's, the user's, then each folder from the file system's root down to the working
directory; what they include stands behind them. Files below the working directory, and rules with
a condition, come last, with the files that were touched.
"""

import posixpath
from dataclasses import dataclass, field, replace

from memd.instructions import includes, rules
from memd.instructions.loading import Folders, Loading, folders_down, is_below
from memd.instructions.values import (
    GLOBS,
    MENTIONS,
    TOUCHED_FILES,
    InstructionDisk,
    InstructionFile,
    Resolution,
    ViewRequest,
)

INCLUDE_DEPTH = 4
_TOO_DEEP = f"it is included more than {INCLUDE_DEPTH} files deep"
_NO_TEXT = "its name is not one of a text"
_HIDDEN = "a CLAUDE.md or CLAUDE.local.md lies on the way"
_UNMET = "no file that was touched matches its paths"
_GLOBS = f"the rules before it have {GLOBS:,} globs"
_NAMES = ("CLAUDE.md", ".claude/CLAUDE.md")
_LOCAL = "CLAUDE.local.md"
_AGENTS = "AGENTS.md"
_TEXTS = frozenset(
    str.split(
        ".md .mdc .mdx .markdown .txt .text .rst .adoc .org .tex .csv .tsv .log .diff .patch .json "
        ".jsonc .jsonl .yaml .yml .toml .ini .cfg .conf .config .properties .xml .html .htm .css "
        ".scss .sass .less .js .jsx .mjs .cjs .ts .tsx .mts .cts .vue .svelte .py .pyi .rb .go .rs "
        ".java .kt .kts .scala .c .h .cc .cpp .cxx .hpp .cs .swift .php .pl .pm .lua .r .jl .ex "
        ".exs .erl .hs .ml .clj .dart .sh .bash .zsh .fish .ps1 .bat .sql .graphql .gql .proto "
        ".tf .gradle .cmake .make .lock .env"
    )
) | {""}


def resolve(request: ViewRequest, disk: InstructionDisk) -> Resolution:
    """Return what Claude Code loads."""
    return _ClaudeView(request, Loading(request, disk)).resolve()


@dataclass(frozen=True, slots=True)
class _WaitingRule:
    """A rule with a condition, whose globs are relative to ``base``."""

    file: InstructionFile
    base: str
    within: Folders


@dataclass(slots=True)
class _ClaudeView:
    """One resolution. ``waiting`` are the rules whose condition nothing has fulfilled yet."""

    request: ViewRequest
    loading: Loading
    waiting: list[_WaitingRule] = field(default_factory=list)
    globs: int = 0
    mentions: int = 0

    def resolve(self) -> Resolution:
        """Load everything, and list what is not loaded."""
        request = self.request
        self.place(f"{request.managed}/CLAUDE.md", "managed", "managed")
        self.place(f"{request.config}/CLAUDE.md", "user", "user")
        self.rules(f"{request.config}/rules", "user", request.home)
        way = tuple(folders_down("/", request.cwd))
        hidden = self.is_hidden(way)
        for folder in way:
            self.folder(folder)
            self.agents(folder, hidden=hidden)
        self.touch()
        return self.loading.result()

    def folder(self, folder: str) -> None:
        """Load what lies in a folder of the project, or above it."""
        within = (folder, self.request.root)
        for name in _NAMES:
            self.place(posixpath.join(folder, name), "project", "project", within)
        self.rules(posixpath.join(folder, ".claude/rules"), "project", folder, within)
        self.place(posixpath.join(folder, _LOCAL), "local", "project", within)

    def is_hidden(self, way: tuple[str, ...]) -> bool:
        """Return whether a file on the way hides every AGENTS.md."""
        read = self.loading.disk.read
        paths = (posixpath.join(folder, name) for folder in way for name in (*_NAMES, _LOCAL))
        return any(not read(path).missing for path in paths)

    def agents(self, folder: str, *, hidden: bool) -> None:
        """Load the AGENTS.md of a folder, or say why it is not loaded."""
        file = InstructionFile(posixpath.join(folder, _AGENTS), "agents", "project")
        self.take(file, (folder, self.request.root), _HIDDEN if hidden else "")

    def place(self, path: str, kind: str, scope: str, within: Folders = ()) -> None:
        """Load a file that counts by its place, if it is there, and what it includes."""
        self.take(InstructionFile(path, kind, scope), within)

    def take(self, file: InstructionFile, within: Folders, why_not: str = "") -> None:
        """Load a file and what it includes, unless there is a reason against it."""
        text = self.loading.fetch(file, within, why_not)
        if text is not None:
            self.load(file, text, within)

    def load(self, file: InstructionFile, text: str, within: Folders) -> None:
        """Load a file whose text is here, and then what it includes."""
        parsed = includes.parsed(text)
        self.loading.load(file, parsed.text)
        within = within and (self.request.cwd,)
        for name in parsed.includes:
            self.mentions += 1
            if self.mentions > MENTIONS:
                self.loading.problem(file.path, f"includes too much: {MENTIONS:,} mentions in all")
                return
            self.include(file, includes.target(name, file.path, self.request.home), within)

    def include(self, by: InstructionFile, path: str, within: Folders) -> None:
        """Load an included file and what it includes in turn."""
        file = InstructionFile(path, "include", by.scope, by.depth + 1, by.path)
        extension = posixpath.splitext(path)[1].lower()
        if file.depth > INCLUDE_DEPTH:
            self.take(file, within, _TOO_DEEP)
        else:
            self.take(file, within, "" if extension in _TEXTS else _NO_TEXT)

    def rules(self, folder: str, scope: str, base: str, within: Folders = ()) -> None:
        """Load the rules below a folder that always load, and list the others."""
        for path in self.loading.walk(folder, ".md", within):
            self.rule(_WaitingRule(InstructionFile(path, "rule", scope), base, within))

    def rule(self, rule: _WaitingRule) -> None:
        """Load a rule, or let it wait for a file that fits its condition."""
        text = self.loading.fetch(rule.file, rule.within)
        if text is None:
            return
        head = rules.head(text)
        self.globs += len(head.globs)
        if self.globs > GLOBS:
            self.loading.refuse(replace(rule.file, condition=head.globs[:GLOBS]), _GLOBS)
            return
        head = rules.condition(head)
        for problem in head.problems:
            self.loading.problem(rule.file.path, problem)
        if head.globs:
            file = replace(rule.file, condition=head.globs)
            self.loading.refuse(file, _UNMET)
            self.waiting.append(replace(rule, file=file))
        else:
            self.load(rule.file, head.body, rule.within)

    def touch(self) -> None:
        """Load what the touched files bring: rules that fit, and files of folders below."""
        entered = {self.request.cwd}
        for number, name in enumerate(self.request.touched):
            path = posixpath.normpath(posixpath.join(self.request.cwd, name))
            if number >= TOUCHED_FILES:
                why = f"and later touched files are passed over: {TOUCHED_FILES} are before it"
                self.loading.problem(path, why)
                return
            if is_below(path, self.request.cwd):
                for folder in folders_down(self.request.cwd, posixpath.dirname(path)):
                    if folder not in entered:
                        entered.add(folder)
                        self.folder(folder)
            self.fulfil(path)

    def fulfil(self, path: str) -> None:
        """Load the rules whose condition a touched file fulfils."""
        waiting, self.waiting = self.waiting, []
        for rule in waiting:
            inner = path[len(rule.base.rstrip("/")) + 1 :] if is_below(path, rule.base) else ""
            if not inner or not rules.fits(rule.file.condition, inner):
                self.waiting.append(rule)
            elif (text := self.loading.fetch(rule.file, rule.within)) is not None:
                self.load(rule.file, rules.head(text).body, rule.within)
