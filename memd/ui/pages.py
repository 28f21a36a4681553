"""The templates: every value is escaped, and every text's hidden characters are spelled out."""

import os
from collections.abc import Mapping
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from memd.ui import texts

FOLDER = os.path.join(os.path.dirname(__file__), "templates")


class Pages:
    """The templates, all read at the start so that a broken one is found at once."""

    def __init__(self) -> None:
        self._environment = Environment(
            loader=FileSystemLoader(FOLDER),
            autoescape=True,
            finalize=texts.visible,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._environment.globals |= {
            "url": texts.url,
            "size": texts.size,
            "span": texts.span,
            "line": texts.line,
        }
        self._templates = {
            name: self._environment.get_template(name)
            for name in self._environment.list_templates()
        }

    def render(self, name: str, context: Mapping[str, Any]) -> str:
        """Return a rendered page; ``name`` is its template's without the suffix."""
        return self._templates[f"{name}.html"].render(context)
