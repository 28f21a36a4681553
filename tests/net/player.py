"""Play the recorded exchanges of a file in a home of its own, and bring answers to their meaning.

A file of ``exchanges/`` is a list of steps. A step has one request: ``call`` (a method with
``params``; ``client`` names who says hello), ``hook`` (an event of a client, with ``payload``),
``memctl`` (arguments, ``--json`` is added; ``input``), ``mcp`` (a method with ``params``), ``put``
(a file that another program writes) or ``say`` (a turn of the conversation). ``keep`` names members
of the answer for later steps. ``$cwd``, ``$memory``, ``$home``, ``$session``, ``$transcript`` and
what was kept are replaced in every text of a request.
"""

import json
import re
from string import Template
from typing import Any

from tests.net.kit import Conversation, Home, Project, until
from tests.net.wire import BIN, Client, Mcp, RpcError

Json = Any
# What a person reads: its words may change, that there is a sentence may not.
SENTENCES = set(
    str.split(
        "message hint remedy detail problem problems note notes stale_notice explanation "
        "says systemMessage permissionDecisionReason markdown"
    )
)
# What the load of the machine decides, and the position in a list: no meaning.
UNSTABLE = {"waits", "next"}
# Numbers that differ from run to run.
NUMBERS = set(str.split("pid rss uptime connections size bytes tokens at mtime session_bytes"))
_TIME = re.compile(r"((Mon|Tue|Wed|Thu|Fri|Sat|Sun) )?\d{4}-\d\d-\d\d(T[\d:.]+(Z|\+00:00))?")
_KEY = re.compile(r"(?<![\w-])[\w-]{43}(?![\w-])")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_HASH = re.compile(r"\b([0-9a-f]{64}|[0-9a-f]{16})\b")
_ID = re.compile(r"[a-z]{1,2}\d+")
_LONG = 400  # characters; of a longer text only its outline counts
_OUTLINE = re.compile(
    r"^(#+ .*|</?[a-z][\w-]*>|- \[.*|Memory .*:|---.*|[@+-]{2,3} .*)$", re.MULTILINE
)


class Player:
    """A home with a daemon, a project and a conversation, in which steps are played."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._project: Project = home.project("project")
        self._conversation: Conversation = self._project.conversation("session-1")
        self._clients: dict[str, Client] = {}
        self._mcp: Mcp | None = None
        self._known = {
            "memory": str(self._project.memory),
            "transcript": str(self._conversation.path),
            "cwd": self._project.cwd,
            "home": str(home.path / "h"),
            "run": str(home.path / "r"),
            "bin": BIN,
            "session": self._conversation.session,
        }

    def play(self, step: dict[str, Json]) -> Json:
        """Play one step; return the meaning of its answer, ``None`` where it has none."""
        request = {key: part for key, part in step.items() if key != "answer"}
        try:
            answer = self._ask(self._filled(request))
        except RpcError as error:
            return {"error": {"code": error.code, **self._meaning(error.data)}}
        for name, member in step.get("keep", {}).items():
            value = answer
            for key in member.split("."):
                value = value[int(key) if key.isdigit() else key]
            self._known[name] = str(value)
        return self._meaning(answer)

    def close(self) -> None:
        if self._mcp is not None:
            self._mcp.close()

    def _filled(self, value: Json) -> Json:
        if isinstance(value, str):
            return Template(value).safe_substitute(self._known)
        if isinstance(value, list):
            return [self._filled(part) for part in value]
        if isinstance(value, dict):
            return {key: self._filled(part) for key, part in value.items()}
        return value

    def _ask(self, step: dict[str, Json]) -> Json:
        params = step.get("params", {})
        match step:
            case {"call": "rpc.discover"}:
                return _signatures(self._client("golden").call("rpc.discover"))
            case {"call": method}:
                return self._client(step.get("client", "golden")).call(method, **params)
            case {"hook": [client, event], "payload": payload}:
                named = {"session_id": "session-1", "cwd": self._project.cwd, **payload}
                given = {"client": client, "event": event, "deadline_ms": 10_000}
                answer = self._client(client).call("hook", payload=named, **given)
                until(self._rests, "no job is left")
                return answer
            case {"memctl": arguments}:
                done = self._project.memctl("--json", *arguments, input=step.get("input", ""))
                is_json = done.stdout.startswith(("{", "["))
                answer = json.loads(done.stdout) if is_json else bool(done.stdout)
                return {"status": done.returncode, "stdout": answer, "stderr": bool(done.stderr)}
            case {"mcp": method}:
                return self._bridge().call(method, **params)
            case {"put": path, "text": text}:
                self._project.put(path, text)
            case {"say": words, "reply": reply}:
                self._conversation.user(words).assistant(reply)
            case _:
                raise ValueError(step)
        return None

    def _rests(self) -> bool:
        return all(job["ended"] for job in self._home.call("job.list")["jobs"])

    def _client(self, name: str) -> Client:
        if name not in self._clients:
            self._clients[name] = self._home.connect(name=name)
        return self._clients[name]

    def _bridge(self) -> Mcp:
        if self._mcp is None:
            self._mcp = self._project.mcp()
        return self._mcp

    def _meaning(self, value: Json, key: str = "") -> Json:
        """Return an answer without what differs from run to run, its sentences and long texts."""
        if isinstance(value, dict):
            named = {str(self._meaning_of_text(name, "")): name for name in sorted(value)}
            return {shown: self._meaning(value[name], name) for shown, name in named.items()}
        if isinstance(value, list):
            return [self._meaning(part, key) for part in value]
        if isinstance(value, str):
            return self._meaning_of_text(value, key)
        if isinstance(value, int | float) and not isinstance(value, bool):
            is_counted = isinstance(value, int) and value < 1000 and key not in NUMBERS
            return value if is_counted else "<number>"
        return value

    def _meaning_of_text(self, text: str, key: str) -> str | list[str] | None:
        if key in UNSTABLE:
            return None
        if key in SENTENCES and text:
            return "<sentence>"
        if key in {"version", "program"}:
            return f"<{key}>"
        slug = self._project.folder.name
        for name in ("memory", "transcript", "cwd", "home", "run", "bin"):
            text = text.replace(self._known[name], f"${name}").replace(slug, "$slug")
        for pattern, stand_in in (
            (_TIME, "<time>"),
            (_UUID, "<uuid>"),
            (_HASH, "<hash>"),
            (_KEY, "<key>"),
        ):
            text = pattern.sub(stand_in, text)
        if _ID.fullmatch(text):
            return "<id>"
        if len(text) > _LONG:
            return ["<outline>", *(found[0][:60] for found in _OUTLINE.finditer(text))]
        return text


def _signatures(document: Json) -> Json:
    """Return of each method of an OpenRPC document its parameters and the members of its result."""
    schemas = document["components"]["schemas"]

    def members(schema: Json) -> list[str]:
        named = schemas.get(schema.get("$ref", "").rpartition("/")[2], schema)
        return sorted(named.get("properties", {}))

    return {
        method["name"]: {
            "parameters": [p["name"] + ("" if p["required"] else "?") for p in method["params"]],
            "result": members(method["result"]["schema"]),
        }
        for method in document["methods"]
    }
