"""The routes and errors of memd-team as Markdown."""

from collections.abc import Mapping

from memd.server.errors import MalformedRequestError, TeamServerError
from memd.server.routes import ROUTES, TeamRoute

_OPERATORS = ("storage_format",)  # kinds that only commands meet
_OTHER_STATUSES = (
    (405, "the route has no such method; `Allow` names those it has"),
    (415, "the body is no `application/json`, or is encoded"),
    (428, "a removal without `If-Match`"),
)


def markdown() -> str:
    """Return docs/team-protocol.md's tables: each route with its parts, and all errors."""
    parts = ["## Routes\n"]
    for row in ROUTES:
        parts += _route(row)
    parts += ["## Errors\n", "| status | kind | again | when |", "|---|---|---|---|"]
    errors = [each for each in TeamServerError.__subclasses__() if each.kind not in _OPERATORS]
    rows = [_error(error) for error in errors]
    malformed = MalformedRequestError.kind
    rows += [(status, malformed, "no", words) for status, words in _OTHER_STATUSES]
    parts += [f"| {status} | `{kind}` | {again} | {w} |" for status, kind, again, w in sorted(rows)]
    return "\n".join(parts) + "\n"


def _route(row: TeamRoute) -> list[str]:
    who = "a token" if row.token else "no token"
    path = row.path.replace(":path", "")
    lines = [f"### `{row.method} {path}`\n", f"Needs {who}. Answers {row.answer}\n"]
    lines += _names("Query", row.query) + _names("Headers", row.headers)
    if row.body:
        lines.append(f"Body: {row.body}.\n")
    if row.errors:
        lines.append(f"Errors of its own: {', '.join(map(str, row.errors))}.\n")
    return lines


def _names(title: str, names: Mapping[str, str]) -> list[str]:
    if not names:
        return []
    return [f"{title}:\n", *(f"- `{name}`: {words}" for name, words in names.items()), ""]


def _error(error: type[TeamServerError]) -> tuple[int, str, str, str]:
    words = (error.__doc__ or "").split("\n")[0]
    return error.status, error.kind, "yes" if error.retryable else "no", words
