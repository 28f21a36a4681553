"""Find the files that Cursor loads: AGENTS.md and the rules of each folder of a project. Pure.

As its maker documents it, since it cannot be run here: a rule loads always, with a file that fits
its globs, when the model asks for it by its description, or by hand. Folders below the working
directory count once a file in them is touched.
"""

import posixpath

from msgspec import Struct, field
from msgspec.structs import replace

from memd.instructions import patterns, rules
from memd.instructions.loading import EMPTY, Loading, folders_down, is_below, nearest
from memd.instructions.patterns import PathPattern
from memd.instructions.values import (
    GLOBS,
    InstructionDisk,
    InstructionFile,
    Resolution,
    ViewRequest,
)

_UNMET = "no file that was touched matches its globs"
_ASKED_FOR = "the model asks for it by its description"
_BY_HAND = "it has neither globs nor a description: it loads when a person names it"
_BROKEN = "its head cannot be read"
_USELESS = "none of its globs can be used"
_MANY = f"the rules before it have {GLOBS:,} globs"


def resolve(request: ViewRequest, disk: InstructionDisk) -> Resolution:
    """Return what Cursor loads."""
    loading = Loading(request, disk)
    _CursorView(loading, nearest(disk, request.cwd, (".git",))).resolve()
    return loading.result()


class _GlobRule(Struct, frozen=True):
    """A rule that waits for a file below ``base`` that fits one of its patterns."""

    file: InstructionFile
    body: str
    base: str
    patterns: tuple[PathPattern, ...] = ()


class _CursorView(Struct):
    """One resolution. ``waiting`` are the rules whose globs nothing has fitted yet."""

    loading: Loading
    root: str
    entered: set[str] = field(default_factory=set)
    waiting: list[_GlobRule] = field(default_factory=list)
    globs: int = 0

    def resolve(self) -> None:
        """Load everything, and list what is not loaded."""
        self.enter(self.loading.request.cwd)
        for path in self.loading.touched():
            if is_below(path, self.root) and path != self.root:
                self.enter(posixpath.dirname(path))
                self.fit(path)

    def enter(self, folder: str) -> None:
        """Load what lies in the folders from the root to one, each once."""
        for each in folders_down(self.root, folder):
            if each in self.entered:
                continue
            self.entered.add(each)
            file = InstructionFile(posixpath.join(each, "AGENTS.md"), "agents", "project")
            is_missing = self.loading.disk.read(file.path).missing
            text = None if is_missing else self.loading.fetch(file, (self.root,))
            if text is not None:
                self.loading.load(file, text)
            folder_of_rules = posixpath.join(each, ".cursor/rules")
            for path in self.loading.walk(folder_of_rules, ".mdc", (self.root,)):
                self.rule(InstructionFile(path, "rule", "project"), each)

    def rule(self, file: InstructionFile, base: str) -> None:
        """Load a rule, or say what it waits for."""
        text = self.loading.fetch(file, (self.root,))
        if text is None:
            return
        raw, body = rules.split(text)
        head = rules.fields(raw)
        if head is None:
            self.loading.refuse(file, _BROKEN)
            self.loading.problem(file.path, f"never loads: {_BROKEN}")
        elif not body.strip():
            self.loading.refuse(file, EMPTY)
        elif str(head.get("alwaysApply")).lower() == "true":
            self.loading.load(file, body)
        elif any(rules.texts(head.get("globs"))):
            self.wait(_GlobRule(file, body, base), text)
        else:
            is_described = any(rules.texts(head.get("description")))
            self.loading.refuse(file, _ASKED_FOR if is_described else _BY_HAND)

    def wait(self, rule: _GlobRule, text: str) -> None:
        """Let a rule wait for a file that fits its globs, as far as they can be used."""
        head = rules.head(text, "globs")
        good, problems = rules.compile_patterns(head)
        self.globs += len(good) or 1
        if self.globs > GLOBS:
            self.loading.refuse(rule.file, _MANY)
        elif problems and not good:
            self.loading.refuse(rule.file, _USELESS)
            self.loading.problem(rule.file.path, f"never loads: {_USELESS}")
        else:
            for problem in problems:
                self.loading.problem(rule.file.path, problem)
            file = replace(rule.file, condition=head.globs)
            self.loading.refuse(file, _UNMET)
            # Globs that stand for no pattern match everything.
            fitting = good or (patterns.compile_pattern("*"),)
            self.waiting.append(replace(rule, file=file, patterns=fitting))

    def fit(self, path: str) -> None:
        """Load the rules that a touched file fits."""
        waiting, self.waiting = self.waiting, []
        for rule in waiting:
            inner = path[len(rule.base.rstrip("/")) + 1 :] if is_below(path, rule.base) else ""
            if inner and patterns.fits(rule.patterns, inner):
                self.loading.load(rule.file, rule.body)
            else:
                self.waiting.append(rule)
