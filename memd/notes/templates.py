"""Load the template of new notes and the prompt for a model: a person's own or the built-in."""

import os
import re

from msgspec import Struct

from memd.base.errors import MemdError, NotFound
from memd.base.names import printable
from memd.base.package_files import read_text
from memd.notes import sections
from memd.store.directory import Directory

FILE_BYTES = 32 * 1024  # of a template or a prompt
_MOST_HEADINGS = 20
_TEMPLATE, _PROMPT = "template.md", "prompt.md"
_VARIABLE = r"\{\{(currentNotes|notesPath|sizes)\}\}"


class NotesTemplate(Struct, frozen=True):
    """The text of new notes, the prompt with its variables, and why a person's own is not used."""

    text: str
    prompt: str
    problems: tuple[str, ...] = ()

    def filled_prompt(self, notes: sections.SessionNotes, path: str) -> str:
        """Return the prompt with its variables filled in; inserted text is not searched again."""
        current = sections.rendered(notes, cursor=False)
        values = {"currentNotes": current, "notesPath": path, "sizes": sizes(notes)}
        return re.sub(_VARIABLE, lambda match: values[match[1]], self.prompt)


def sizes(notes: sections.SessionNotes) -> str:
    """Return a line for each section that is too large, and one if the notes as a whole are."""
    tokens = [(part.title.strip(), sections.section_tokens(part)) for part in notes.sections]
    measured = [(title, size, sections.SECTION_TOKENS) for title, size in tokens]
    measured.append(("All sections", sum(size for _, size in tokens), sections.NOTES_TOKENS))
    lines = [
        f"- {title}: about {size} tokens of {most}" for title, size, most in measured if size > most
    ]
    return "\n".join(lines) or "Every section is within its size."


def chosen_template(config_dir: str) -> NotesTemplate:
    """Return the template and the prompt to use; ``config_dir`` is the client's absolute folder.

    A file in that folder that cannot be used is a problem, and the built-in text is used instead.
    Blocks.
    """
    problems: list[str] = []
    text = _own_or_built_in(_TEMPLATE, config_dir, problems)
    prompt = _own_or_built_in(_PROMPT, config_dir, problems)
    return NotesTemplate(text, prompt, tuple(problems))


def _own_or_built_in(name: str, config_dir: str, problems: list[str]) -> str:
    """Return the text of a person's own file, or the built-in one if there is none.

    If the person's file cannot be used, the reason is added to ``problems``.
    """
    path = f"{config_dir}/session-memory/config/{name}"
    text, problem = _read(path)
    if text and not problem and name == _TEMPLATE and not _has_valid_headings(text):
        problem = f"a template has 1 to {_MOST_HEADINGS} headings, no two of them alike"
    if problem:
        problems.append(f"{name} ({printable(path)}) is not used: {problem}; the built-in one is")
    if text and not problem:
        return text
    return read_text(f"notes/templates/{name}")


def _has_valid_headings(template: str) -> bool:
    """Return whether a template has a heading, and neither too many nor two of them alike."""
    titles = [section.title.strip() for section in sections.parse(template).sections]
    return 0 < len(titles) <= _MOST_HEADINGS and len(set(titles)) == len(titles)


def _read(path: str) -> tuple[str, str]:
    """Return a file's text and why it cannot be used, both "" if there is no file."""
    folder, name = os.path.split(path)
    try:
        with Directory(folder) as directory:
            result = directory.read(name, FILE_BYTES)
        text = result[0].decode("utf-8-sig") if result else ""
    except NotFound:
        return "", ""
    except UnicodeDecodeError:
        return "", "it is not UTF-8"
    except MemdError as error:
        return "", error.sentence
    is_empty = result is not None and not text.strip()
    return text, "it is empty" if is_empty else ""
