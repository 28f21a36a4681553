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
        environment = Environment(
            loader=FileSystemLoader(FOLDER),
            autoescape=True,
            finalize=texts.visible,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        helpers = (texts.url, texts.size, texts.span, texts.line, texts.counted)
        environment.globals |= {helper.__name__: helper for helper in helpers}
        self._templates = {
            name: environment.get_template(name) for name in environment.list_templates()
        }

    def render(self, name: str, context: Mapping[str, Any]) -> str:
        """Return a rendered page; ``name`` is its template's without the suffix."""
        return self._templates[f"{name}.html"].render(context)
