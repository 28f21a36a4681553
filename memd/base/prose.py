"""Templates of prompts, and how they are filled. Pure.

Texts that several prompts share (what a memory can be, what never becomes one, how one is saved)
are in ``templates/`` here, all others beside the code that uses them. In a template
- a line ``@flag text`` is there only when the flag is set, ``@!flag text`` only when it is not;
- ``{{name}}`` stands for a value. All are filled in one pass, so nothing that a value holds is
  ever taken for a placeholder.
"""

import re
from collections.abc import Collection, Mapping
from functools import cache

from memd.base.package_files import read_text

_CONDITION = re.compile(r"@(!?)([a-z_]+)(?: (.*))?")
_PLACEHOLDER = re.compile(r"\{\{([a-z_]+)\}\}")


@cache
def template(name: str, package: str = "memd.base") -> str:
    """Return a template of a package, read once."""
    return read_text(f"{package.partition('.')[2]}/templates/{name}.md").strip("\n")


def inert(text: str) -> str:
    """Return a text that cannot close the tags that it stands between."""
    return text.replace("<", "&lt;")


def fill(text: str, flags: Collection[str], values: Mapping[str, str]) -> str:
    """Return a template with its conditions decided and its values in place."""
    lines = []
    for line in text.split("\n"):
        condition = _CONDITION.fullmatch(line) if line.startswith("@") else None
        if condition is None:
            lines.append(line)
            continue
        negation, flag, rest = condition.groups()
        if (flag in flags) != bool(negation):
            lines.append(rest or "")
    return _PLACEHOLDER.sub(lambda match: values[match[1]], "\n".join(lines))
