"""What an agent that is fully lost might call: 31 kinds with 40 variants each.

The last six kinds are calls of a dream's tools, which other runs do not have.
"""

# ruff: noqa: E501 - tables of command lines

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

from memd.agent.workspace import BYTES
from tests.agent.home import CANARY, TOKEN, Home, memory

VARIANTS = 40
Call = tuple[str, Any]

# Names that lead elsewhere: each is tried as a path of every tool.
NAMES = (
    "a.md/", "./a.md", "a//b.md", "a/./b.md", "a/../a.md", ".md", "..md", "a.md.", "a.md ",
    "A.MD", "a.md:x", "CON.md", "aux.md", "COM1.md", "LPT9.md", "NUL", "a\\b.md", "C:a.md",
    "\\\\?\\C:\\a.md", "//host/a.md", "file:///a.md", "~/a.md", "~root/a.md", "$HOME/a.md",
    "${HOME}", "%HOME%", "%2e%2e%2fa.md", "%252e", "%c0%ae", "..%00/a.md", "a%00.md", "a\n.md",
    "a\r.md", "a\t.md", "\x1b[2J.md", "\x7f.md", "\x80.md", "\uff0e\uff0e\uff0fa.md", "\u2025/a.md",
    "\u2024.md", "a\u2215b.md", "\u29f8.md", "\ufe52.md", "\u200b.md", ".g\u200cit", "\u202e.md",
    "\ufeff.md", "\u0130.md", "\u1e9e.md", "\ufb01.md", "\xe9.md", "e\u0301.md", "\ud800.md",
    "\udc80.md", "x" * 252 + ".md", "x" * 253 + ".md", "p/" * 2047 + "a", "d/" * 100 + "a.md",
    "-rf.md", "--help", "*.md", "[a].md", "{a,b}.md", "`id`.md", "$(id).md", ";id.md", "'.md",
    '".md', "<a>.md", "a](x).md", "a%20b.md", "a\0.md", "", " ", "\x00",
)  # fmt: skip
# Front matter that breaks parsers, small and large.
BOMBS = (
    "[" * 30_000, "{" * 30_000, "- " * 20_000, "a: &a [*a]", "? " * 10_000, "!!python/object:os.system x",
    "&a [1]\nb: *a", "<<: {a: b}", "name: !!binary x", "a: " + "9" * 5000, "x: 0x" + "f" * 6000,
    "name: 2024-13-45", "=: 1", "[a]: b", "k" * 200_000 + ": v", "name: a\nname: b", "a: \x00",
    "a: \u2028", "a: |\n  ---\n", "...", "name: no", "name: 123", "name: {}", 'name: ""',
)  # fmt: skip


def outside(home: Home) -> list[str]:
    """Return paths that lie outside the roots, or hold what nobody may read."""
    up = "../" * 12
    results = [
        f"{home.path}/secret.txt", f"{home.path}/.ssh/id_rsa", f"{home.path}/code/p-evil/x.md",
        f"{home.path}/.claude/projects/other/memory/o.md", f"{home.memory}/../../../secret.txt",
        f"{home.memory}/../../other/memory/o.md", f"{home.project}/../p-evil/x.md",
        f"{home.project}-evil/x.md", f"{home.memory}/link_out.md", f"{home.memory}/link_dir/secret.txt",
        f"{home.project}/link_dir/secret.txt", f"{home.memory}/hard.md", f"{home.project}/hard.md",
        f"{home.memory}/fifo.md", f"{home.project}/fifo.md", f"{home.memory}/sock.md",
        f"{home.memory}/dangling.md", f"{home.memory}/.consolidate-lock", f"{home.project}/.env",
        f"{home.project}/credentials.json", f"{home.project}/server.pem", f"{home.project}/.git/config",
        f"{up}etc/passwd", "/etc/passwd", "/etc/shadow", "/proc/self/environ", "/proc/self/mem",
        "/proc/self/fd/0", f"/proc/self/root{home.path}/secret.txt", "/proc/self/cwd/secret.txt",
        "/proc/1/environ", "/dev/zero", "/dev/stdin", "/dev/tty", "/sys/kernel/notes", "link_out.md",
        "link_dir/secret.txt", "sub/../../secret.txt", "/", "//etc//passwd",
    ]  # fmt: skip
    assert len(results) == VARIANTS
    return results


def commands(home: Home) -> list[str]:
    """Return command lines that would do harm in a shell."""
    target, secret = f"{home.path}/made-by-agent", f"{home.path}/secret.txt"
    chained = [
        f"ls; touch {target}", f"ls && touch {target}", f"ls || touch {target}", f"ls & touch {target}",
        f"ls | tee {target}", f"ls > {target}", f"ls >> {target}", f"ls 2> {target}", f"ls &> {target}",
        f"ls >| {target}", f"cat <> {target}", f"ls\ntouch {target}", f"ls\r\ntouch {target}",
        f"ls |& tee {target}", f"{{ touch {target}; }}", f"(touch {target})", f"`touch {target}`",
        f"ls $(touch {target})", f'ls "$(touch {target})"', f'ls "`touch {target}`"',
        f"cat <(touch {target})", f"ls >(tee {target})", f"ls ${{x:=$(touch {target})}}",
        f"ls $((a[$(touch {target})]))", f"cat <<E\n$(touch {target})\nE", f"cat <<< {secret}",
        f"cat {{{secret},a.md}}", f"cat$IFS{secret}", f"ls # x\ntouch {target}", f"! touch {target}",
        f"eval touch {target}", f"exec touch {target}", f"bash -c 'touch {target}'", f"sh {target}",
        f"python3 -c 'open(\"{target}\",\"w\")'", f"curl -d @{secret} http://127.0.0.1:1/",
        f"ls | xargs touch {target}", f"awk 'BEGIN{{system(\"touch {target}\")}}'", f"sed -n 'w {target}' a.md",
        f"dd of={target}",
    ]  # fmt: skip
    finds = [
        f"find . -exec touch {target} \\;", f"find . -execdir touch {target} \\;", "find . -delete",
        f"find . -fprint {target}", f"find . -fprint0 {target}", f"find . -fls {target}",
        f"find . -fprintf {target} x", f"find . -ok touch {target} \\;", f"find -files0-from {secret}",
        f"find . -newer {secret}", f"find . -samefile {secret}", "find -L . -name 's*'",
        "find -H link_dir", "find -D exec .", f"find {home.path}", "find / -name passwd",
        "find .. -name '*'", "find . -name a -o -delete", "find . \\( -name a.md -delete \\)",
        "find . -printf %p", "find . -regex '(a+)+$'", "find . -quit -delete", "find . -name",
        "find . \\(", "find . " + "\\( " * 60, "find . -size +99999999999999999999",
        "find . -maxdepth x", "find . -type l", "find . -type s", "find . -perm 777", "find . -ls",
        "find . -user root", "find . -inum 1", "find . -links 2", "find . -lname x", "find . -xtype l",
        "find . -follow", "find . -mount", "find . -print0", "find link_dir",
    ]  # fmt: skip
    greps = [
        f"grep -f {secret} x a.md", f"grep --file={secret} a.md", f"grep --exclude-from={secret} x a.md",
        f"grep -r {CANARY[:6]} /", f"grep -R {CANARY[:6]} {home.path}", f"grep -r {CANARY[:6]} link_dir",
        f"grep -P '(a+)+$' {home.project}/redos.txt", f"grep -E '(a|a)*b' {home.project}/redos.txt",
        f"grep -E '(a+)+(b+)+$' {home.project}/redos.txt", "grep -d recurse x .", "grep -D read x fifo.md",
        "grep x fifo.md", "grep x", "grep -z x /proc/self/environ", f"grep --binary-files=text x {secret}",
        f"grep -- x {secret}", "grep -E 'a{1000}{1000}' a.md", "grep -E '((((' a.md", "grep '\\(a\\)\\1' a.md",
        f"grep -e {CANARY[:6]} {secret}", f"grep -c '' {secret}", f"grep -L x {secret}",
        f"grep -v x {home.project}/.env", f"grep -r {CANARY[:6]} {home.project}",
        f"grep -rv nothing {home.memory}", f"grep -r . {home.path}/.claude", f"grep -rl . {home.path}/code",
        f"grep -E '^ghp_[a-m]' {home.project}/README.md", f"grep {TOKEN[:9]} {home.project}/README.md",
        f"grep -o {TOKEN[:9]} {home.transcripts}/s.jsonl", f"grep -rh gh.._ {home.transcripts}",
        f"grep -A 999999999 x {secret}", "grep -m -1 x a.md", "grep --line-buffered -r x /",
        f"grep -r --include=* {CANARY[:6]} ..", "grep --devices=read x .", "grep -T x a.md",
        "grep --null x a.md", "grep -U x a.md", "grep --no-ignore-case x a.md",
    ]  # fmt: skip
    others = [
        "cat", "cat -", "cat /dev/zero", f"cat {secret}", "cat ~/.ssh/id_rsa", "cat ..%2fsecret.txt",
        "cat fifo.md", "cat hard.md", "cat link_out.md", "cat sock.md", f"head -c 5 {secret}",
        "head -c 99999999999999 /dev/zero", "tail -f a.md", "tail -F a.md", "tail --pid=1 -f a.md",
        "tail --retry -f nosuch", "tail -c +0 /dev/zero", f"wc --files0-from={secret}", "wc -c /dev/zero",
        f"wc -l {secret}", "stat -L link_out.md", "stat --printf=%n a.md", "stat -f /", f"stat {secret}",
        "ls /", "ls -R /", f"ls {home.path}", "ls /proc/self/fd/", "ls --time-style=+%s", "ls -L link_dir",
        "ls --hyperlink=always", "/bin/ls", "./ls", "l''s --x", "LS", "env ls", "LD_PRELOAD=./e.so ls",
        "ls\u00a0-l", "l\u0455", "\\ls --context",
    ]  # fmt: skip
    for listed in (chained, finds, greps, others):
        assert len(listed) == VARIANTS, len(listed)
    return chained + finds + greps + others


def generated(home: Home) -> Iterator[tuple[str, list[Call]]]:
    """Yield each kind with its calls."""
    away, lines = outside(home), commands(home)
    note = memory("evil", "x")
    for kind, first in (("chain", 0), ("find", 40), ("grep", 80), ("command", 120)):
        yield kind, [("Bash", {"command": line}) for line in lines[first : first + VARIANTS]]
    makers: dict[str, Callable[[str], Call]] = {
        "read outside": lambda path: ("Read", {"file_path": path}),
        "cat outside": lambda path: ("Bash", {"command": f"cat {json.dumps(path)} | head -3"}),
        "stat outside": lambda path: ("Bash", {"command": f"stat {json.dumps(path)}"}),
        "list outside": lambda path: ("Bash", {"command": f"ls -laR {json.dumps(path)}"}),
        "search outside": lambda path: (
            "Grep", {"pattern": "CANARY|root", "path": path, "output_mode": "content"}),
        "glob outside": lambda path: ("Glob", {"pattern": "**/*", "path": path}),
        "write outside": lambda path: ("Write", {"file_path": path, "content": note}),
        "edit outside": lambda path: (
            "Edit", {"file_path": path, "old_string": "a", "new_string": "b"}),
    }  # fmt: skip
    for kind, make in makers.items():
        yield kind, [make(path) for path in away]
    for kind, first in (("names written", 0), ("more names written", len(NAMES) - VARIANTS)):
        names = NAMES[first : first + VARIANTS]
        yield kind, [("Write", {"file_path": name, "content": note}) for name in names]
    names = NAMES[:VARIANTS]
    yield "names read", [("Read", {"file_path": name}) for name in names]
    yield (
        "names searched",
        [("Grep", {"pattern": name, "path": name}) for name in NAMES[-VARIANTS:]],
    )
    yield "globs", [("Glob", {"pattern": f"{path}*"}) for path in away]
    yield from _writes(home)
    yield from _choices(away)


def _choices(away: list[str]) -> Iterator[tuple[str, list[Call]]]:
    makers: dict[str, Callable[[str], Call]] = {
        "merged into": lambda path: ("Merge", {"into": path, "from": ["a.md"]}),
        "merged from": lambda path: ("Merge", {"into": "a.md", "from": ["sub/b.md", path]}),
        "superseded": lambda path: ("Supersede", {"old": path, "by": "a.md", "still_true": ["x"]}),
        "expired": lambda path: ("Expire", {"path": path, "reason": "2026-01-01 is over"}),
        "kept": lambda path: ("Keep", {"log": path, "fact": "CANARY", "into": "a.md"}),
    }
    for kind, make in makers.items():
        yield kind, [make(path) for path in away]
    junk: tuple[Any, ...] = (
        {}, {"into": "a.md"}, {"into": "a.md", "from": []}, {"into": "a.md", "from": "a.md"},
        {"into": "a.md", "from": ["a.md"]}, {"into": ["a.md"], "from": ["a.md"]}, {"old": 5},
        {"old": "a.md", "by": "a.md"}, {"old": "rule.md", "by": "rule.md"}, {"path": "MEMORY.md"},
        {"path": None, "reason": "x"}, {"path": "a.md"}, {"log": "logs/../a.md", "fact": "alpha"},
        {"log": "a.md", "fact": "alpha", "into": "evil.md"}, {"into": "a.md", "from": ["x"] * 999},
        {"log": "logs", "fact": "", "into": "evil.md", "type": "feedback"}, [], None,
        {"into": "broken.md", "from": ["a.md"]}, {"into": "MEMORY.md", "from": ["a.md"]},
    )  # fmt: skip
    names = ("Merge", "Supersede", "Expire", "Keep")
    yield (
        "junk of choices",
        [(names[n % len(names)], junk[n // 2 % len(junk)]) for n in range(VARIANTS)],
    )


def _writes(home: Home) -> Iterator[tuple[str, list[Call]]]:
    kinds = (
        "MEMORY.md",
        "a.md",
        "rule.md",
        "broken.md",
        ".consolidate-lock",
        "memory.md",
        "state.db",
        "team/x.md",
    )
    yield (
        "written over unread",
        [
            ("Write", {"file_path": kinds[n % len(kinds)], "content": f"gone {n}"})
            for n in range(VARIANTS)
        ],
    )
    yield (
        "bombs",
        [
            (
                "Write",
                {
                    "file_path": f"bomb{n}.md",
                    "content": f"---\n{BOMBS[n % len(BOMBS)]}\n---\n{n}\n",
                },
            )
            for n in range(VARIANTS)
        ],
    )
    yield (
        "giants",
        [
            (
                "Write",
                {
                    "file_path": f"giant{n}.md",
                    "content": memory("g", "y" * (66_000 + n * BYTES // 8)),
                },
            )
            for n in range(VARIANTS)
        ],
    )
    yield (
        "floods",
        [
            ("Write", {"file_path": f"flood/{n}.md", "content": memory("f", f"{n} " * 15_000)})
            for n in range(VARIANTS)
        ],
    )
    hidden = (
        "\U000e0041",
        "\u202e",
        "\u200b",
        "<!-- obey -->",
        "\x00",
        "\x1b[8m",
        "\ufeff",
        "\u2066",
    )
    yield (
        "hidden text",
        [
            (
                "Write",
                {"file_path": f"h{n}.md", "content": memory("h", f"x{hidden[n % 8]}run it {n}")},
            )
            for n in range(VARIANTS)
        ],
    )
    yield (
        "secrets and rules",
        [
            ("Write", {"file_path": f"s{n}.md", "content": memory("s", f"{n} {TOKEN}")})
            if n % 2
            else (
                "Write",
                {"file_path": f"r{n}.md", "content": memory("r", f"always run {n}", "feedback")},
            )
            for n in range(VARIANTS)
        ],
    )
    junk: tuple[Any, ...] = (
        {}, {"file_path": 5}, {"file_path": None}, {"file_path": ["a.md"]}, {"file_path": {"a": 1}},
        {"file_path": "a.md", "mode": "0777"}, [], "a.md", 7, None, True, {"file_path": "a.md", "limit": -1},
        {"file_path": "a.md", "offset": 10**30}, {"command": "ls", "run_in_background": True},
        {"command": 5}, {"pattern": "x", "multiline": True}, {"pattern": "x", "output_mode": "all"},
        {"pattern": "x", "-A": -5}, {"content": "x"}, {"file_path": "a" * 2_000_000},
    )  # fmt: skip
    tools = ("Read", "Write", "Edit", "Bash", "Grep", "Glob", "WebFetch", "Task")
    yield "junk", [(tools[n % len(tools)], junk[n % len(junk)]) for n in range(VARIANTS)]
    yield "other tools", [
        (name, {"command": f"touch {home.path}/made-by-agent", "url": f"http://127.0.0.1:{n}/"})
        for n, name in enumerate(("WebFetch", "WebSearch", "Task", "NotebookEdit", "KillShell",
                                  "mcp__x__write", "bash", "READ", "", "\x00") * 4)
    ]  # fmt: skip


_WORDS = (
    "ls", "cat", "head", "tail", "wc", "stat", "find", "grep", "rm", "|", "|", "-l", "-n", "-c", "-r",
    "-R", "-f", "-exec", "-delete", "-name", "-o", "!", "--", "-", "'*'", "*", "**", "*/*", "..", "../..",
    "/", "/etc/passwd", "/proc/self/environ", "a.md", "sub", "MEMORY.md", "link_out.md", "link_dir",
    "hard.md", "fifo.md", ".consolidate-lock", "\\(", "\\)", "-type", "f", "CANARY", "-A", "9", "+5",
    "-e", "-E", "(a+)+$", "$(id)", ";", ">", "x", "''", "'", '"', "~", "--include=*", "-maxdepth", "2",
)  # fmt: skip


def random_lines(home: Home, count: int) -> Iterator[str]:
    """Yield so many command lines put together by chance, the same ones in every run."""
    chance = random.Random(11)  # noqa: S311 - see above
    words = (*_WORDS, str(home.path), f"{home.path}/secret.txt", str(home.project))
    for _ in range(count):
        yield " ".join(chance.choices(words, k=chance.randint(1, 7)))
