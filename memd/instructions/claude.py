"""Find the files that Claude Code loads, in its order; a later one counts more. Pure.

The order is that of version 2.1.329 (docs/decisions.md): first the machine's files, then the
user's, then those of each folder from the file system's root down to the working directory. The
files that a file includes follow it. Rules with a condition, and the files of folders below the
working directory, are loaded for files that were touched.
"""

import posixpath
from collections.abc import Iterable

from msgspec import Struct, field
from msgspec.structs import replace

from memd.base.globs import Matcher
from memd.base.instruction_files import InstructionFile
from memd.base.names import printable
from memd.instructions import includes, rules
from memd.instructions.loading import EMPTY, Folders, Loading, folders_down, is_below
from memd.instructions.values import (
    GLOBS,
    MENTIONS,
    FilesRequest,
    InstructionDisk,
    Resolution,
)

INCLUDE_DEPTH = 4
_MOST_CYCLES = 20  # that are named
_TOO_DEEP = f"it is included more than {INCLUDE_DEPTH} files deep"
_NO_TEXT_FILE = "its name is not one of a text"
_HIDDEN = "a CLAUDE.md or CLAUDE.local.md is loaded in its place"
_CONDITION_UNMET = "no file that was touched matches its paths"
_TOO_MANY_GLOBS = f"the rules before it have {GLOBS:,} globs"
_NAMES = ("CLAUDE.md", ".claude/CLAUDE.md")
_LOCAL_NAME = "CLAUDE.local.md"
_AGENTS_NAMES = ("AGENTS.md", ".claude/AGENTS.md")
_RULES = ".claude/rules"
_TEXT_EXTENSIONS = frozenset(
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


def resolve(request: FilesRequest, disk: InstructionDisk) -> Resolution:
    """Return the files that Claude Code loads, and why it does not load others."""
    folders = tuple(folders_down("/", request.cwd))
    # First only to see whether a CLAUDE.md is loaded: then no AGENTS.md is.
    probe = _ClaudeFiles(request, Loading(request, disk))
    for folder in folders:
        probe.load_by_name((*_NAMES, _LOCAL_NAME), "project", folder)
    loads_agents = not probe.hides_agents(folders)
    return _ClaudeFiles(request, Loading(request, disk), loads_agents).resolve()


class _ConditionalRule(Struct, frozen=True):
    """A rule with a condition, whose matchers test paths relative to ``base``."""

    file: InstructionFile
    base: str
    matchers: tuple[Matcher, ...]

    @property
    def of_person(self) -> bool:
        """Whether it is a rule of the user or the machine, and not of a project."""
        return self.file.scope != "project"


class _ClaudeFiles(Struct):
    """One resolution of the files that Claude Code loads.

    ``agents`` says whether AGENTS.md files are loaded. ``waiting_rules`` are the rules whose
    condition no file has met yet, by real path. ``globs``, ``mentions`` and ``cycles`` of
    includes count those so far.
    """

    request: FilesRequest
    loading: Loading
    agents: bool = False
    waiting_rules: dict[str, _ConditionalRule] = field(default_factory=dict)
    globs: int = 0
    mentions: int = 0
    cycles: int = 0

    def resolve(self) -> Resolution:
        """Load everything, and list what is not loaded."""
        request = self.request
        for folder, rules_folder, scope in (
            (request.managed, f"{request.managed}/{_RULES}", "managed"),
            (request.config, f"{request.config}/rules", "user"),
        ):
            self.fetch_and_load(InstructionFile(f"{folder}/{_NAMES[0]}", scope, scope))
            self.load_rules_below(rules_folder, scope, request.cwd)
        for folder in folders_down("/", request.cwd):
            self.load_by_name(_NAMES, "project", folder)
            self.load_project_rules(folder)
            self.load_by_name((_LOCAL_NAME,), "local", folder)
            self.load_by_name(_AGENTS_NAMES, "agents", folder, "" if self.agents else _HIDDEN)
        self.loading.external = False  # files that are loaded later never include from outside
        self.load_touched()
        return self.loading.result()

    def hides_agents(self, folders: Iterable[str]) -> bool:
        """Return whether one of the folders has a loaded file that replaces all AGENTS.md files."""
        for folder in folders:
            for name in (*_NAMES, _LOCAL_NAME):
                file = self.loading.file(posixpath.join(folder, name))
                if file and file.loaded and file.scope == "project":
                    return True
        return False

    def load_by_name(self, names: Iterable[str], kind: str, folder: str, why_not: str = "") -> None:
        """Load the files with some names in a folder, and the files that they include.

        ``why_not`` is a reason against all of them, "" for none.
        """
        for name in names:
            file = InstructionFile(posixpath.join(folder, name), kind, "project")
            self.fetch_and_load(file, (folder, self.request.root), why_not)

    def fetch_and_load(
        self, file: InstructionFile, within: Folders = (), why_not: str = ""
    ) -> None:
        """Load a file and the files that it includes, unless there is a reason against it."""
        text = self.loading.fetch(file, within, why_not)
        if text is not None:
            self.load_with_includes(file, rules.split(text)[1])

    def load_with_includes(self, file: InstructionFile, body: str) -> None:
        """Load a file with this text, and then the files that it includes."""
        parsed = includes.parsed(body)
        if parsed.text.strip():
            self.loading.load(file, parsed.text)
        else:
            self.loading.refuse(file, EMPTY)
        self.load_includes(file, parsed.includes)

    def load_includes(self, by: InstructionFile, names: Iterable[str]) -> None:
        """Load the files that a file includes, and those that they include in turn.

        ``names`` are the paths that the file ``by`` names.
        """
        within = () if by.scope == "user" else (self.request.cwd,)
        real_path = self.loading.real(by.path)  # a link includes relative to where it leads
        for name in names:
            self.mentions += 1
            if self.mentions == MENTIONS:
                self.loading.problem(by.path, f"includes too much: {MENTIONS:,} mentions in all")
            if self.mentions >= MENTIONS:
                return
            path = includes.target(name, real_path, self.request.home)
            file = InstructionFile(path, "include", by.scope, by.depth + 1, by.path)
            why_not = ""
            if file.depth > INCLUDE_DEPTH:
                why_not = _TOO_DEEP
            elif posixpath.splitext(path)[1].lower() not in _TEXT_EXTENSIONS:
                why_not = _NO_TEXT_FILE
            self.fetch_and_load(file, within, why_not)
            if self.cycles < _MOST_CYCLES and self.leads_back(file, by):
                self.cycles += 1
                why = f"includes {printable(path)}, which leads back to it"
                self.loading.problem(by.path, why)

    def leads_back(self, file: InstructionFile, by: InstructionFile) -> bool:
        """Return whether ``by`` is the file that it includes, or is included by it, deep or not."""
        real = self.loading.real(file.path)
        including: InstructionFile | None = by
        for _ in range(file.depth):
            if including is None or self.loading.real(including.path) == real:
                return including is not None
            including = self.loading.file(including.included_by) if including.included_by else None
        return False

    def load_project_rules(self, folder: str) -> None:
        """Load the rules of a folder of the project that always load, and list the others."""
        path = posixpath.join(folder, _RULES)
        self.load_rules_below(path, "project", folder, (path, self.request.cwd))

    def load_rules_below(self, folder: str, scope: str, base: str, within: Folders = ()) -> None:
        """Load the rules below a folder that always load, and list the others."""
        for path in self.loading.walk(folder, ".md", within):
            if self.loading.real(path) not in self.waiting_rules:
                self.load_rule(InstructionFile(path, "rule", scope), base, within)

    def load_rule(self, file: InstructionFile, base: str, within: Folders) -> None:
        """Load a rule, or keep it until a touched file meets its condition."""
        text = self.loading.fetch(file, within)
        if text is None:
            return
        head = rules.head(text)
        self.globs += len(head.globs)
        if self.globs > GLOBS:
            self.loading.refuse(file, _TOO_MANY_GLOBS)
            return
        for problem in head.problems:
            self.loading.problem(file.path, problem)
        if not head.matchers:
            self.load_with_includes(file, head.body)
            return
        file = replace(file, condition=head.globs)
        self.loading.refuse(file, _CONDITION_UNMET)
        self.waiting_rules[self.loading.real(file.path)] = _ConditionalRule(
            file, base, head.matchers
        )
        self.load_includes(file, includes.parsed(head.body).includes)

    def load_touched(self) -> None:
        """Load the rules that touched files match, and the files of the folders below.

        For each touched file, first the rules of the person are tried, then those of the folders
        between the working directory and the file, then those of the folders above.
        """
        cwd, entered = self.request.cwd, {self.request.cwd}
        for path in self.loading.touched():
            rules_of_person = [rule for rule in self.waiting_rules.values() if rule.of_person]
            self.load_matching(path, rules_of_person)
            folders_below = tuple(folders_down(cwd, posixpath.dirname(path)))[1:]
            for folder in folders_below if is_below(path, cwd) else ():
                if folder not in entered:
                    entered.add(folder)
                    self.enter_folder(folder)
                rules_here = [r for r in self.waiting_rules.values() if r.base == folder]
                self.load_matching(path, rules_here)
            rules_above = [
                rule
                for rule in self.waiting_rules.values()
                if is_below(cwd, rule.base) and not rule.of_person
            ]
            self.load_matching(path, rules_above)

    def enter_folder(self, folder: str) -> None:
        """Load the files of a folder below the working directory, except its conditional rules."""
        self.load_by_name(_NAMES, "project", folder)
        self.load_by_name((_LOCAL_NAME,), "local", folder)
        self.load_project_rules(folder)
        loads_agents = self.agents and not self.hides_agents((folder,))
        self.load_by_name(_AGENTS_NAMES, "agents", folder, "" if loads_agents else _HIDDEN)

    def load_matching(self, path: str, waiting_rules: Iterable[_ConditionalRule]) -> None:
        """Load each of the waiting rules whose condition the touched file at ``path`` meets."""
        for rule in waiting_rules:
            relative = path[len(rule.base.rstrip("/")) + 1 :] if is_below(path, rule.base) else ""
            if not relative or not any(fits(relative) for fits in rule.matchers):
                continue
            del self.waiting_rules[self.loading.real(rule.file.path)]
            text = self.loading.fetch(rule.file)
            if text is not None:
                self.load_with_includes(rule.file, rules.split(text)[1])
