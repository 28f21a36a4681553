"""The guard before PyYAML: what may be loaded at all, decided before anything is built.

Measured: 30,000 brackets end the process in the C loader, a 674-byte chain of merges costs a
minute, and tags make dates, sets and errors of many classes. So a text is looked at first by size
and brackets, then as a stream of events, which needs neither recursion nor memory. What passes is
a shallow mapping without anchors, aliases, merges or tags. This file is the door of PyYAML.
"""

from typing import Any

import yaml

from memd.core import limits

# Values stay the strings that were written: no dates, booleans or sexagesimal numbers.
LOADER: Any = yaml.CBaseLoader if yaml.__with_libyaml__ else yaml.BaseLoader
ERRORS = (yaml.YAMLError, ValueError)  # ValueError: what the pure Python scanner makes of escapes
# The scanner's cost grows with the square of open brackets; no depth can exceed their number.
_BRACKETS = 64


def problem(raw: str) -> str:
    """Say in words why a frontmatter must not be loaded, "" when it may.

    ``raw`` is the text between the fences. Never raises and never builds a value.
    """
    if len(raw.encode("utf-8", errors="replace")) > limits.FRONTMATTER_BYTES:
        return f"it is larger than {limits.FRONTMATTER_BYTES} bytes"
    if raw.count("[") + raw.count("{") > _BRACKETS:
        return f"it has more than {_BRACKETS} brackets"
    try:
        return _walk(raw)
    except ERRORS as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 2}" if mark is not None else ""
        return f"it is not valid YAML{where}"


def _walk(raw: str) -> str:
    depth = nodes = documents = 0
    for event in yaml.parse(raw, Loader=LOADER):
        documents += isinstance(event, yaml.DocumentStartEvent)
        if documents > 1:
            return "it has more than one document"
        if isinstance(event, yaml.NodeEvent):
            nodes += 1
            if words := _forbidden(event, root=not depth):
                return words
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > limits.FRONTMATTER_DEPTH or nodes > limits.FRONTMATTER_NODES:
            return "it is nested too deep or has too many values"
    return ""


def _forbidden(event: Any, *, root: bool) -> str:
    words = ""
    if isinstance(event, yaml.AliasEvent):
        words = "it uses an alias"
    elif event.anchor is not None:
        words = "it uses an anchor"
    elif event.tag is not None:
        words = "it uses a tag"
    elif isinstance(event, yaml.ScalarEvent) and event.value == "<<" and not event.style:
        words = "it uses a merge key"
    elif root and not isinstance(event, yaml.MappingStartEvent):
        words = "it is not a mapping"
    return words
