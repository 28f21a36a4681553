"""Find the files that Cursor loads: AGENTS.md and the rules of each folder of a project. Pure.

This follows Cursor's documentation, since Cursor cannot be run here. A rule is loaded always, with
a file that matches its globs, by the model's choice from its description, or by hand. Folders below
the working directory count after a file in them is touched.
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

_GLOBS_UNMET = "no file that was touched matches its globs"
_BY_DESCRIPTION = "the model asks for it by its description"
_BY_HAND = "it has neither globs nor a description: it loads when a person names it"
_HEAD_UNREADABLE = "its head cannot be read"
_NO_USABLE_GLOB = "none of its globs can be used"
_TOO_MANY_GLOBS = f"the rules before it have {GLOBS:,} globs"


def resolve(request: ViewRequest, disk: InstructionDisk) -> Resolution:
    """Return the files that Cursor loads."""
    loading = Loading(request, disk)
    _CursorView(loading, nearest(disk, request.cwd, (".git",))).resolve()
    return loading.result()


class _GlobRule(Struct, frozen=True):
    """A rule that is loaded once a file below ``base`` matches one of its patterns."""

    file: InstructionFile
    body: str
    base: str
    patterns: tuple[PathPattern, ...] = ()


class _CursorView(Struct):
    """One resolution.

    ``waiting_rules`` are the rules whose globs no touched file has matched yet, ``entered`` the
    folders whose files are loaded, and ``globs`` counts the globs of all rules.
    """

    loading: Loading
    root: str
    entered: set[str] = field(default_factory=set)
    waiting_rules: list[_GlobRule] = field(default_factory=list)
    globs: int = 0

    def resolve(self) -> None:
        """Load everything, and list what is not loaded."""
        self.enter_folders(self.loading.request.cwd)
        for path in self.loading.touched():
            if is_below(path, self.root) and path != self.root:
                self.enter_folders(posixpath.dirname(path))
                self.load_matching(path)

    def enter_folders(self, folder: str) -> None:
        """Load the files of the folders from the root down to ``folder``, each folder once."""
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
                self.load_rule(InstructionFile(path, "rule", "project"), each)

    def load_rule(self, file: InstructionFile, base: str) -> None:
        """Load a rule, or list the reason why it is not loaded now."""
        text = self.loading.fetch(file, (self.root,))
        if text is None:
            return
        raw, body = rules.split(text)
        head = rules.fields(raw)
        if head is None:
            self.loading.refuse(file, _HEAD_UNREADABLE)
            self.loading.problem(file.path, f"never loads: {_HEAD_UNREADABLE}")
        elif not body.strip():
            self.loading.refuse(file, EMPTY)
        elif str(head.get("alwaysApply")).lower() == "true":
            self.loading.load(file, body)
        elif any(rules.texts(head.get("globs"))):
            self.keep_waiting(_GlobRule(file, body, base), text)
        else:
            is_described = any(rules.texts(head.get("description")))
            self.loading.refuse(file, _BY_DESCRIPTION if is_described else _BY_HAND)

    def keep_waiting(self, rule: _GlobRule, text: str) -> None:
        """Keep a rule until a touched file matches its globs, if some of them can be used."""
        head = rules.head(text, "globs")
        usable, problems = rules.compile_patterns(head)
        self.globs += len(usable) or 1
        if self.globs > GLOBS:
            self.loading.refuse(rule.file, _TOO_MANY_GLOBS)
        elif problems and not usable:
            self.loading.refuse(rule.file, _NO_USABLE_GLOB)
            self.loading.problem(rule.file.path, f"never loads: {_NO_USABLE_GLOB}")
        else:
            for problem in problems:
                self.loading.problem(rule.file.path, problem)
            file = replace(rule.file, condition=head.globs)
            self.loading.refuse(file, _GLOBS_UNMET)
            # Globs that give no pattern match everything.
            all_patterns = usable or (patterns.compile_pattern("*"),)
            self.waiting_rules.append(replace(rule, file=file, patterns=all_patterns))

    def load_matching(self, path: str) -> None:
        """Load the rules whose globs the touched file at ``path`` matches."""
        rules_before, self.waiting_rules = self.waiting_rules, []
        for rule in rules_before:
            relative = path[len(rule.base.rstrip("/")) + 1 :] if is_below(path, rule.base) else ""
            if relative and patterns.fits(rule.patterns, relative):
                self.loading.load(rule.file, rule.body)
            else:
                self.waiting_rules.append(rule)
