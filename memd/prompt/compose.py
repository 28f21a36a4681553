"""Compose a prompt from its parts, the same parts always to the same bytes. Pure.

The text is in ``templates/``, one file for each section; texts shared with other prompts are with
``base/prose.py``, which describes the format of templates.

A prompt depends on no clock and no counter, since a client loses its prompt cache from the first
byte that differs.
"""

import re
import shlex
from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from memd.base import limits, text
from memd.base.prose import fill, template
from memd.text import quoting

SECTIONS = (
    "heading",
    "purpose",
    "types",
    "never",
    "saving",
    "daily",
    "access",
    "trust",
    "team",
    "beside",
    "search",
    "extra",
)
_NAME_CHARACTERS = 80
# The tag that quotes an index, in any disguise, so that no index can close it.
_INDEX_TAG = r"(?i)[<\uff1c\ufe64\u2039](?=[\W_]{0,8}memory[\W_]?index)"
_SHARED_TEMPLATES = ("types", "never", "saving")
_TEMPLATES: Mapping[str, str] = {
    name: template(name) if name in _SHARED_TEMPLATES else template(name, "memd.prompt")
    for name in (*SECTIONS, "index")
}


class Variant(StrEnum):
    """The kind of session that a prompt is for."""

    STANDARD = "standard"
    TEAM = "team"
    DAILY_LOG = "daily_log"
    AGENT = "agent"


class IndexText(Struct, frozen=True):
    """An index for a prompt: its absolute path and its text, already cut.

    A ``repository`` index lies in the working tree, so anybody who commits there may have written
    it.
    """

    path: str
    text: str
    repository: bool = False


class Parts(Struct, frozen=True):
    """All inputs of a prompt.

    ``search`` includes how to search past conversations; ``transcripts`` is the folder of the
    working directory's transcripts. ``agent_scope`` is user, project or local. A ``brief`` prompt
    has no examples.
    """

    variant: Variant
    display_name: str
    directory: str
    indexes: tuple[IndexText, ...]
    team_directory: str = ""
    agent: str = ""
    agent_scope: str = ""
    skip_index: bool = False
    search: bool = True
    transcripts: str = ""
    extra_guidelines: str = ""
    brief: bool = False
    rules: str = ""  # the section with the person's own rules, "" for none


def compose(parts: Parts) -> str:
    """Return the text of a prompt: its sections in order, the indexes, and the person's rules."""
    extra_guidelines = parts.extra_guidelines.strip()
    is_daily, is_team = parts.variant is Variant.DAILY_LOG, parts.variant is Variant.TEAM
    # Whether sections, and optional parts of templates, are in the prompt.
    included = {
        "types": not is_daily,
        "saving": not is_daily,
        "daily": is_daily,
        "team": is_team,
        "search": parts.search,
        "extra": bool(extra_guidelines),
        f"agent_{parts.agent_scope}": parts.variant is Variant.AGENT,
        "index": not parts.skip_index,
        "brief": parts.brief,
        "transcripts": bool(parts.transcripts),
    }
    flags = [name for name, is_in in included.items() if is_in]
    values = {
        "display_name": text.one_line(parts.display_name, _NAME_CHARACTERS),
        "directory": parts.directory,
        "directory_quoted": shlex.quote(parts.directory),
        "team_directory": parts.team_directory,
        "agent": parts.agent,
        "transcripts_quoted": shlex.quote(parts.transcripts),
        "extra_guidelines": extra_guidelines,
        "index_lines": str(limits.INDEX_LINES),
    }
    names = [name for name in SECTIONS if included.get(name, True)]
    sections = [fill(_TEMPLATES[name], flags, values) for name in names]
    if not parts.skip_index:
        sections += [_index_section(index) for index in parts.indexes]
    sections += [parts.rules] if parts.rules else []
    return "\n\n".join(sections) + "\n"


def team_section(directory: str, index: IndexText) -> str:
    """Return the prompt about a team directory for a client that loads the private one itself."""
    section = fill(_TEMPLATES["team"], ("alone",), {"team_directory": directory})
    return f"{section}\n\n{_index_section(index)}\n"


def daily_section(directory: str) -> str:
    """Return the prompt about daily logs for a client that loads the private directory itself."""
    return fill(_TEMPLATES["daily"], ("index",), {"directory": directory}) + "\n"


def _index_section(index: IndexText) -> str:
    """Return the section that quotes an index, in tags that its text cannot close."""
    index_text = index.text.rstrip()
    if index.repository:
        index_text = quoting.neutralise(index_text).rstrip()
    index_text = re.sub(_INDEX_TAG, "&lt;", index_text)
    flag = "empty"
    if index_text:
        flag = "repository" if index.repository else "own"
    return fill(_TEMPLATES["index"], (flag,), {"index_path": index.path, "index": index_text})
