"""Load the YAML of a head with python-frontmatter, behind a guard. Pure.

Nothing reaches PyYAML before the guard: 30,000 brackets end the process in the C loader, a 674-byte
chain of merges costs a minute, and tags make dates, sets and errors of many classes. What passes is
a shallow mapping of texts.
"""

from collections.abc import Mapping
from typing import Any

import yaml
from frontmatter.default_handlers import YAMLHandler

from memd.base import limits

_YAML = YAMLHandler()
# Values stay the texts that were written: no dates, booleans or sexagesimal numbers.
_LOADER: Any = yaml.CBaseLoader if yaml.__with_libyaml__ else yaml.BaseLoader
_ERRORS = (yaml.YAMLError, ValueError)  # ValueError: what the scanner in Python makes of escapes
_MOST_BRACKETS = 64  # open ones cost the scanner their square; no depth exceeds their number


def mapping(text: str) -> tuple[Mapping[str, Any] | None, str]:
    """Return the YAML mapping of a head's text, or ``None`` and why it is not read.

    Its values are texts as they were written, and lists and mappings of these.
    """
    reason = _problem(text)
    if reason:
        return None, reason
    try:
        return _YAML.load(text, Loader=_LOADER) or {}, ""
    except _ERRORS:
        return None, "it is not valid YAML"


def _problem(text: str) -> str:
    """Return the reason why YAML must not load a head's text, "" if it may.

    Never raises and never builds a value: events need neither recursion nor memory.
    """
    if len(text.encode("utf-8", errors="replace")) > limits.FRONTMATTER_BYTES:
        return f"it is larger than {limits.FRONTMATTER_BYTES} bytes"
    if text.count("[") + text.count("{") > _MOST_BRACKETS:
        return f"it has more than {_MOST_BRACKETS} brackets"
    try:
        return _refused_event(text)
    except _ERRORS as error:
        mark = getattr(error, "problem_mark", None)
        # YAML counts from 0, and the first line of the file is the fence.
        return f"it is not valid YAML{f' in line {mark.line + 2}' if mark else ''}"


def _refused_event(text: str) -> str:
    """Return why a YAML text is refused, "" if it is not. Raises what PyYAML raises."""
    depth = nodes = documents = 0
    for event in yaml.parse(text, Loader=_LOADER):
        documents += isinstance(event, yaml.DocumentStartEvent)
        if documents > 1:
            return "it has more than one document"
        if isinstance(event, yaml.NodeEvent):
            nodes += 1
            is_merge = getattr(event, "value", "") == "<<" and not getattr(event, "style", "")
            if event.anchor is not None or getattr(event, "tag", None) is not None or is_merge:
                return "it uses an anchor, an alias, a tag or a merge key"
            if not depth and not isinstance(event, yaml.MappingStartEvent):
                return "it is not a mapping"
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > limits.FRONTMATTER_DEPTH or nodes > limits.FRONTMATTER_NODES:
            return "it is nested too deep or has too many values"
    return ""
