"""The template of new notes and the prompt of the model that keeps them: built in or a person's."""

import os
import re
from dataclasses import dataclass
from importlib import resources

from memd.core.errors import MemdError
from memd.core.names import printable
from memd.core.settings import NotesSettings
from memd.files.directory import Directory, DirectoryMissingError
from memd.notes.sections import (
    NOTES_TOKENS,
    SECTION_TOKENS,
    SessionNotes,
    parse,
    rendered,
    section_tokens,
)

FILE_BYTES = 32 * 1024
SECTIONS = 20
_TEMPLATE, _PROMPT = "template.md", "prompt.md"
_FOLDER = "session-memory/config"
_MISSING = "there is no such file"
_VARIABLE = re.compile(r"\{\{(currentNotes|notesPath|sizes)\}\}")


@dataclass(frozen=True, slots=True)
class NotesTemplate:
    """The text of new notes, the prompt with its variables, and why a person's own is not used."""

    text: str
    prompt: str
    problems: tuple[str, ...] = ()

    def filled(self, notes: SessionNotes, path: str) -> str:
        """Return the prompt with its variables put in, in one pass: nothing put in is searched."""
        values = {
            "currentNotes": rendered(notes, cursor=False),
            "notesPath": path,
            "sizes": sizes(notes),
        }
        return _VARIABLE.sub(lambda match: values[match[1]], self.prompt)


def sizes(notes: SessionNotes) -> str:
    """Return a line for each section that is too large, and one where all together are."""
    tokens = [(section.title.strip(), section_tokens(section)) for section in notes.sections]
    lines = [
        f"- {title}: about {size} tokens of {SECTION_TOKENS}"
        for title, size in tokens
        if size > SECTION_TOKENS
    ]
    total = sum(size for _, size in tokens)
    if total > NOTES_TOKENS:
        lines.append(f"- all sections: about {total} tokens of {NOTES_TOKENS}")
    return "\n".join(lines) or "- every section is within its size"


def chosen(settings: NotesSettings, config_dir: str) -> NotesTemplate:
    """Return the template and the prompt in force; ``config_dir`` is the client's, absolute.

    The file that the settings name comes before the one in the client's folder. A file that is
    there and cannot be used is a problem, and the built-in text takes its place. Blocks.
    """
    problems: list[str] = []
    text = _own(_TEMPLATE, settings.template, config_dir, problems)
    prompt = _own(_PROMPT, settings.prompt, config_dir, problems)
    return NotesTemplate(text, prompt, tuple(problems))


def _own(name: str, setting: str, config_dir: str, problems: list[str]) -> str:
    """Return the text of a person's own file, or the built-in one."""
    path = os.path.expanduser(setting) or f"{config_dir}/{_FOLDER}/{name}"
    text, problem = _read(path, missing=_MISSING if setting else "")
    if text and name == _TEMPLATE:
        titles = [section.title.strip() for section in parse(text).sections]
        if not len(set(titles)) == len(titles) in range(1, SECTIONS + 1):
            problem = f"a template has 1 to {SECTIONS} headings, no two of them alike"
    if problem:
        problems.append(f"{printable(path)} is not used: {problem}; the built-in one is")
    if text and not problem:
        return text
    return resources.files("memd.notes").joinpath(f"templates/{name}").read_text("utf-8")


def _read(path: str, *, missing: str) -> tuple[str, str]:
    """Return a file's text, and why it cannot be used: ``missing`` where there is none."""
    try:
        with Directory(os.path.dirname(path)) as directory:
            result = directory.read(os.path.basename(path), FILE_BYTES)
    except DirectoryMissingError:
        return "", missing
    except MemdError as error:
        return "", error.sentence
    if result is None:
        return "", missing
    try:
        text = result[0].decode("utf-8-sig")
    except UnicodeDecodeError:
        return "", "it is not UTF-8"
    return text, "" if text.strip() else "it is empty"
