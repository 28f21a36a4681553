"""Claude Code as far as its hooks and transcripts go, with what stands in each session's context.

The events, their order and their members are those that Claude Code 2.1.329 was seen to send.
"""

import json
import random
import re
import subprocess
import sys
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from memd.base.text import iso_time
from memd.client.hook_file import SOURCE as HOOK
from tests.support.daemon import Home

_SURFACED = re.compile(r"^Memory \(saved [^)]*\): (.+):$", re.MULTILINE)
_EVENT_SECONDS = 0.9  # of the second after which the hook gives an event up


@dataclass
class Session:
    """A session: its transcript, the memories in its context, when it was answered last.

    One that was not ``answered`` has no transcript: nobody can go on with it later or fork it.
    ``sure`` says that no doubt about its parent can hold memories back from it.
    """

    id: str
    transcript: Path
    context: set[str] = field(default_factory=set)
    lines: list[dict[str, object]] = field(default_factory=list)
    answered: float = 0.0
    sure: bool = True


class ClaudeCode:
    """One person at one project, with sessions that are begun, resumed, forked and compacted.

    ``twice`` are memories that came although they stood in the context, ``missing`` those that
    did not come although they fitted and did not, ``given`` counts what came.
    """

    def __init__(self, home: Home, cwd: str, topics: dict[str, str], dice: random.Random) -> None:
        self._home = home
        self._cwd = cwd
        self._topics = topics
        self._dice = dice
        self._folder = Path(home.path) / ".claude" / "projects" / re.sub(r"\W", "-", cwd)
        self._folder.mkdir(parents=True, exist_ok=True)
        self.sessions: list[Session] = []
        self.twice: list[str] = []
        self.missing: list[str] = []
        self.given = 0

    def start(self) -> Session:
        """Begin a session."""
        return self._begun("startup", set())[0]

    def prompt(self, session: Session, *, full: bool = False) -> None:
        """Send a prompt and have it answered; it is compacted first if the context is ``full``."""
        prompt_id = str(uuid.UUID(int=self._dice.getrandbits(128)))
        words = self._dice.choice(sorted(self._topics))
        said = {"prompt": words, "prompt_id": prompt_id}
        came = set(_SURFACED.findall(self._hook(session, "UserPromptSubmit", **said)[0]))
        self.given += len(came)
        self.twice += came & session.context
        if session.sure and self._topics[words] not in session.context | came:
            self.missing.append(self._topics[words])
        if full:
            self._compacted(session, "auto", prompt_id, came)
        session.context |= came
        session.answered = time.time()
        stamp = iso_time(session.answered)
        common = {"sessionId": session.id, "timestamp": stamp, "cwd": self._cwd}
        user = {"role": "user", "content": words}
        answer = {"role": "assistant", "id": prompt_id, "content": [{"type": "text", "text": "OK"}]}
        session.lines += [
            {
                "type": "user",
                "parentUuid": None,
                "uuid": f"u{prompt_id}",
                "message": user,
                **common,
            },
            {"type": "assistant", "parentUuid": f"u{prompt_id}", "message": answer, **common},
        ]
        session.transcript.write_text("".join(json.dumps(line) + "\n" for line in session.lines))
        self._hook(session, "Stop", prompt_id=prompt_id)

    def compact(self, session: Session, *, fails: bool) -> None:
        """Compact a session's context; that may fail after it was announced."""
        if fails:
            self._hook(session, "PreCompact", trigger="manual")
        else:
            self._compacted(session, "manual", f"/compact {len(session.lines)}", set())

    def end(self, session: Session) -> None:
        """End a session, which may be resumed."""
        self._hook(session, "SessionEnd", reason="other")

    def clear(self, session: Session) -> None:
        """Begin again with an empty context; the session that was left may be resumed."""
        self._hook(session, "SessionEnd", reason="clear")
        self._begun("clear", set())

    def resume(self, session: Session) -> None:
        """Go on with a session."""
        self._hook(session, "SessionStart", source="resume", **_since(session))

    def latest(self) -> Session:
        """Return the session that ``--continue`` goes on with."""
        return max(self.sessions, key=lambda session: session.answered)

    def fork(self, parent: Session) -> None:
        """Make a session of another one's messages; it is written with its first answer."""
        session, seconds = self._begun("fork", parent.context, **_since(parent))
        session.sure = False
        for line in parent.lines:
            requested = {"requestSessionId": parent.id} if line["type"] == "assistant" else {}
            session.lines.append(requested | line | {"sessionId": session.id})
        if seconds > _EVENT_SECONDS:  # the hook gave up: what it did not tell nobody can know
            self.sessions.remove(session)

    def _begun(self, source: str, context: set[str], **facts: object) -> tuple[Session, float]:
        name = str(uuid.UUID(int=self._dice.getrandbits(128)))
        session = Session(name, self._folder / f"{name}.jsonl", set(context))
        self.sessions.append(session)
        return session, self._hook(session, "SessionStart", source=source, **facts)[1]

    def _compacted(self, session: Session, trigger: str, prompt_id: str, kept: set[str]) -> None:
        self._hook(session, "PreCompact", trigger=trigger, prompt_id=prompt_id)
        _, seconds = self._hook(session, "SessionStart", source="compact", prompt_id=prompt_id)
        session.context = set(kept)
        session.sure = session.sure and seconds <= _EVENT_SECONDS

    def _hook(self, session: Session, event: str, **members: object) -> tuple[str, float]:
        """Run the hook as Claude Code does; return the context it adds, and the seconds it took."""
        common = {"session_id": session.id, "cwd": self._cwd, "hook_event_name": event}
        payload = {**common, "transcript_path": str(session.transcript), **members}
        begun = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-I", "-S", HOOK, "claude-code", event],
            input=json.dumps(payload).encode(),
            env={**self._home.environ, "MEMD_HOOK_DEADLINE_MS": "10000"},
            stdout=subprocess.PIPE,
            check=True,
        )
        answer = json.loads(done.stdout) if done.stdout else {"hookSpecificOutput": {}}
        seconds = time.monotonic() - begun
        return answer["hookSpecificOutput"].get("additionalContext", ""), seconds


def _since(session: Session) -> dict[str, object]:
    return {"seconds_since_last_response": round(time.time() - session.answered)}
