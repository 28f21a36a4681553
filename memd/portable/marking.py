"""Mark a memory as imported, in its frontmatter. Pure."""

from contextlib import suppress

from memd.base.errors import Invalid
from memd.base.values import FOREIGN, IMPORT, least_trusted
from memd.store import memory


def marked(content: bytes, path: str) -> bytes | None:
    """Return a memory whose frontmatter has the origin "import", or its own less trusted one.

    A memory with damaged frontmatter is returned unchanged, since its claims are ignored anyway.
    ``None`` if the frontmatter claims a more trusted origin and cannot be edited.
    """
    claim = memory.parse(content, path)
    if claim.damaged:
        return content
    origin = least_trusted(IMPORT, claim.origin) if claim.origin in FOREIGN else IMPORT
    if claim.origin == origin:
        return content
    fields = {"metadata.origin": origin}
    with suppress(Invalid):
        return memory.with_fields(content, fields)
    # Unusual YAML cannot be edited line by line, but can be written again in memd's own form.
    with suppress(Invalid):
        return memory.with_fields(memory.with_standard_head(content, None, path), fields)
    return content if claim.origin in ("", *FOREIGN) else None
