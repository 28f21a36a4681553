"""Find the files that Claude Code loads, in its order; a later one counts more. Pure.

As 2.1.329 does it (docs/decisions.md). First the machine's files, then the user's, then those of
each folder from the file system's root down to the working directory; what a file includes stands
behind it. Rules with a condition, and the files of folders below, come with the files that were
touched.
"""

import posixpath
from collections.abc import Iterable

from msgspec import Struct, field
from msgspec.structs import replace

from memd.instructions import includes, patterns, rules
from memd.instructions.loading import EMPTY, Folders, Loading, folders_down, is_below
from memd.instructions.patterns import PathPattern
from memd.instructions.values import (
    GLOBS,
    MENTIONS,
    InstructionDisk,
    InstructionFile,
    Resolution,
    ViewRequest,
)

INCLUDE_DEPTH = 4
_TOO_DEEP = f"it is included more than {INCLUDE_DEPTH} files deep"
_NO_TEXT = "its name is not one of a text"
_HIDDEN = "a CLAUDE.md or CLAUDE.local.md is loaded in its place"
_UNMET = "no file that was touched matches its paths"
_GLOBS = f"the rules before it have {GLOBS:,} globs"
_NAMES = ("CLAUDE.md", ".claude/CLAUDE.md")
_LOCAL = "CLAUDE.local.md"
_AGENTS = ("AGENTS.md", ".claude/AGENTS.md")
_RULES = ".claude/rules"
_TEXTS = frozenset(
    str.split(
        ".adoc .asciidoc .astro .bash .bat .c .cc .cfg .cjs .clj .cljc .cljs .cmake .cmd .conf "
        ".config .cpp .cs .css .csv .cts .cxx .dart .diff .edn .ejs .elm .env .erb .erl .ex .exs "
        ".f .f90 .f95 .fish .for .go .gql .gradle .graphql .h .hbs .hpp .hrl .hs .htm .html .hxx "
        ".ini .jade .java .js .json .jsx .kt .kts .latex .less .lhs .lock .log .lua .make "
        ".makefile .md .mjs .ml .mli .mts .org .patch .php .pl .pm .properties .proto .ps1 .pug "
        ".py .pyi .pyw .r .rake .rb .rs .rst .sass .sbt .scala .scss .sh .sql .svelte .swift .tex "
        ".text .toml .ts .tsx .txt .vue .xml .yaml .yml .zsh"
    )
) | {""}


def resolve(request: ViewRequest, disk: InstructionDisk) -> Resolution:
    """Return what Claude Code loads."""
    way = tuple(folders_down("/", request.cwd))
    probe = _ClaudeView(request, Loading(request, disk))
    for folder in way:
        probe.place((*_NAMES, _LOCAL), "project", folder)
    return _ClaudeView(request, Loading(request, disk), not probe.hides_agents(way)).resolve()


class _WaitingRule(Struct, frozen=True):
    """A rule with a condition, whose patterns are relative to ``base``."""

    file: InstructionFile
    base: str
    patterns: tuple[PathPattern, ...]

    @property
    def of_person(self) -> bool:
        """Whether it is a rule of the user or the machine, and not of a project."""
        return self.file.scope != "project"


class _ClaudeView(Struct):
    """One resolution of what Claude Code loads, with or without the AGENTS.md files on the way."""

    request: ViewRequest
    loading: Loading
    agents: bool = False
    waiting: dict[str, _WaitingRule] = field(default_factory=dict)
    globs: int = 0
    mentions: int = 0

    def resolve(self) -> Resolution:
        """Load everything, and list what is not loaded."""
        request = self.request
        for top, rules_of, scope in (
            (request.managed, f"{request.managed}/{_RULES}", "managed"),
            (request.config, f"{request.config}/rules", "user"),
        ):
            self.take(InstructionFile(f"{top}/{_NAMES[0]}", scope, scope))
            self.rules(rules_of, scope, request.cwd)
        for folder in folders_down("/", request.cwd):
            self.place(_NAMES, "project", folder)
            self.rules_of(folder)
            self.place((_LOCAL,), "local", folder)
            self.place(_AGENTS, "agents", folder, "" if self.agents else _HIDDEN)
        self.loading.external = False  # what loads later never includes from outside
        self.touch()
        return self.loading.result()

    def hides_agents(self, folders: Iterable[str]) -> bool:
        """Return whether folders have a file in the place of which no AGENTS.md is loaded."""
        paths = (posixpath.join(folder, name) for folder in folders for name in (*_NAMES, _LOCAL))
        known = (self.loading.file(path) for path in paths)
        return any(file and file.loaded and file.scope == "project" for file in known)

    def place(self, names: Iterable[str], kind: str, folder: str, why_not: str = "") -> None:
        """Load files of a folder that count by their names, and what they include."""
        for name in names:
            file = InstructionFile(posixpath.join(folder, name), kind, "project")
            self.take(file, (folder, self.request.root), why_not)

    def take(self, file: InstructionFile, within: Folders = (), why_not: str = "") -> None:
        """Load a file and what it includes, unless there is a reason against it."""
        text = self.loading.fetch(file, within, why_not)
        if text is not None:
            self.load(file, rules.split(text)[1])

    def load(self, file: InstructionFile, body: str) -> None:
        """Load a file whose text is here, and then what it includes."""
        parsed = includes.parsed(body)
        if parsed.text.strip():
            self.loading.load(file, parsed.text)
        else:
            self.loading.refuse(file, EMPTY)
        self.include(file, parsed.includes)

    def include(self, by: InstructionFile, names: Iterable[str]) -> None:
        """Load what a file includes, and what that includes in turn."""
        within = () if by.scope == "user" else (self.request.cwd,)
        where = self.loading.real(by.path)  # a link includes from where it leads
        for name in names:
            self.mentions += 1
            if self.mentions == MENTIONS:
                self.loading.problem(by.path, f"includes too much: {MENTIONS:,} mentions in all")
            if self.mentions >= MENTIONS:
                return
            path = includes.target(name, where, self.request.home)
            file = InstructionFile(path, "include", by.scope, by.depth + 1, by.path)
            extension = posixpath.splitext(path)[1].lower()
            known = "" if extension in _TEXTS else _NO_TEXT
            self.take(file, within, _TOO_DEEP if file.depth > INCLUDE_DEPTH else known)

    def rules_of(self, folder: str) -> None:
        """Load the rules of a folder of the project that always load, and list the others."""
        path = posixpath.join(folder, _RULES)
        self.rules(path, "project", folder, (path, self.request.cwd))

    def rules(self, folder: str, scope: str, base: str, within: Folders = ()) -> None:
        """Load the rules below a folder that always load, and list the others."""
        for path in self.loading.walk(folder, ".md", within):
            if self.loading.real(path) not in self.waiting:
                self.rule(InstructionFile(path, "rule", scope), base, within)

    def rule(self, file: InstructionFile, base: str, within: Folders) -> None:
        """Load a rule, or let it wait for a file that fits its condition."""
        text = self.loading.fetch(file, within)
        if text is None:
            return
        head = rules.head(text)
        self.globs += len(head.patterns)
        if self.globs > GLOBS:
            self.loading.refuse(file, _GLOBS)
            return
        condition, problems = rules.compiled(head)
        for problem in problems:
            self.loading.problem(file.path, problem)
        if not condition:
            self.load(file, head.body)
            return
        file = replace(file, condition=head.globs)
        self.loading.refuse(file, _UNMET)
        self.waiting[self.loading.real(file.path)] = _WaitingRule(file, base, condition)
        self.include(file, includes.parsed(head.body).includes)

    def touch(self) -> None:
        """Load what the touched files bring: rules that fit, and the files of folders below."""
        cwd, entered = self.request.cwd, {self.request.cwd}
        for path in self.loading.touched():
            below = tuple(folders_down(cwd, posixpath.dirname(path)))[1:]
            if not is_below(path, cwd):
                below = ()
            self.fulfil(path, [rule for rule in self.waiting.values() if rule.of_person])
            for folder in below:
                if folder not in entered:
                    entered.add(folder)
                    self.enter(folder)
                self.fulfil(path, [rule for rule in self.waiting.values() if rule.base == folder])
            above = [rule for rule in self.waiting.values() if is_below(cwd, rule.base)]
            self.fulfil(path, [rule for rule in above if not rule.of_person])

    def enter(self, folder: str) -> None:
        """Load what lies in a folder below the working directory, without its conditions."""
        self.place(_NAMES, "project", folder)
        self.place((_LOCAL,), "local", folder)
        self.rules_of(folder)
        self.place(
            _AGENTS,
            "agents",
            folder,
            "" if self.agents and not self.hides_agents((folder,)) else _HIDDEN,
        )

    def fulfil(self, path: str, waiting: Iterable[_WaitingRule]) -> None:
        """Load each waiting rule whose condition a touched file meets."""
        for rule in waiting:
            inner = path[len(rule.base.rstrip("/")) + 1 :] if is_below(path, rule.base) else ""
            if not inner or not patterns.fits(rule.patterns, inner):
                continue
            del self.waiting[self.loading.real(rule.file.path)]
            text = self.loading.fetch(rule.file)
            if text is not None:
                self.load(rule.file, rules.head(text).body)
