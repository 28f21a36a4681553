"""The tables of cues, one per language, as compiled patterns. Pure.

The tables are data (``cues/*.toml``): a language is added by adding a file and its name here.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

_CJK = re.compile(r"[\u4e00-\u9fff]")
_LISTS = ("verbs", "momentary", "roles", "systems", "places", "stop", "light", "telling", "loose")


@dataclass(frozen=True, slots=True)
class Cue:
    """One pattern of a kind; ``needs`` names a further condition, ``question`` allows a ``?``."""

    kind: str
    pattern: re.Pattern[str]
    needs: str
    question: bool


@dataclass(frozen=True, slots=True)
class Language:
    """One language's cues. ``forbid`` maps a reason to the pattern that forbids a sentence.

    ``chained`` are cues that a later clause may have as well. ``light`` and ``statement`` add to
    ``stop`` and take from it where statements are compared; a phrase begins behind ``lead`` and
    does not end with a ``loose`` word. ``change`` says that something is not as it was, before
    ``replaces`` stands what takes the place of what follows. ``requested`` begins a request to
    remember, ``praise`` confirms. Behind a ``task_frame`` and a ``paste_frame`` stands what is
    not the person's own word (``frames``), and an ``own_list`` is the person's although a colon
    opens it.
    """

    name: str
    cues: tuple[Cue, ...]
    chained: tuple[Cue, ...]
    forbid: Mapping[str, re.Pattern[str]]
    openings: re.Pattern[str]
    reason: re.Pattern[str]
    follows: re.Pattern[str]
    condition: re.Pattern[str]
    status: re.Pattern[str]
    systems: re.Pattern[str]
    places: re.Pattern[str]
    negations: re.Pattern[str]
    momentary: re.Pattern[str]
    stop: frozenset[str]
    light: frozenset[str]
    statement: frozenset[str]
    loose: frozenset[str]
    lead: re.Pattern[str]
    change: re.Pattern[str]
    requested: re.Pattern[str]
    praise: re.Pattern[str]
    replaces: re.Pattern[str]
    task_frame: re.Pattern[str]
    paste_frame: re.Pattern[str]
    own_list: re.Pattern[str]
    wording: Mapping[str, str]
    person: tuple[tuple[re.Pattern[str], str], ...]


def of(text: str) -> Language:
    """Return the language whose cues a text is read with."""
    return language("zh" if _CJK.search(text) else "en")


@cache
def language(name: str) -> Language:
    """Return one language's compiled table."""
    source = resources.files("memd.extract").joinpath(f"cues/{name}.toml").read_text("utf-8")
    table = tomllib.loads(source)
    lists = {key: str(table.get(key, "")).split() for key in _LISTS}
    fill = {
        "verb": r"(?:re-?)?" + _selection(lists["verbs"]),
        "gerund": _selection(form for verb in lists["verbs"] for form in _gerunds(verb)),
        "role": _selection(lists["roles"]),
        "system": _selection(lists["systems"]),
        "place": _selection(lists["places"]),
    }
    whole = name == "en"  # Chinese has no spaces that would end a word

    def compiled(pattern: str) -> re.Pattern[str]:
        for key, value in fill.items():
            pattern = pattern.replace(f"{{{key}}}", value)
        return re.compile(pattern, re.IGNORECASE)

    result = tuple(_cue(item, compiled) for item in table["cue"])
    chained = str(table.get("chained", "")).split()
    return Language(
        name=name,
        cues=result,
        chained=tuple(cue for cue in result if cue.kind in chained),
        forbid={reason: compiled(pattern) for reason, pattern in table["forbid"].items()},
        openings=compiled(table["openings"]),
        reason=compiled(table["reason"]["pattern"]),
        follows=compiled(table["reason"]["follows"]),
        condition=compiled(table["reason"]["condition"]),
        status=compiled(table["standing"]["marker"]),
        systems=_words(lists["systems"], whole=whole),
        places=_words(lists["places"], whole=whole),
        negations=_words(table["negations"], whole=whole),
        momentary=_words(lists["momentary"], whole=whole),
        stop=frozenset(lists["stop"]),
        light=frozenset(lists["light"]),
        statement=frozenset(lists["telling"]),
        loose=frozenset(lists["loose"]),
        lead=compiled(table["lead"]),
        change=compiled(table["change"]["marker"]),
        requested=compiled(table["request"]["asked"]),
        praise=compiled(table["request"]["praise"]),
        replaces=compiled(table["change"]["replaces"]),
        task_frame=compiled(table["frame"]["task"]),
        paste_frame=compiled(table["frame"]["paste"]),
        own_list=compiled(table["frame"]["own"]),
        wording={k: v for k, v in table["wording"].items() if isinstance(v, str)},
        person=tuple((compiled(old), new) for old, new in table["wording"]["person"]),
    )


def _cue(item: Mapping[str, Any], compiled: Any) -> Cue:
    return Cue(item["kind"], compiled(item["pattern"]), item.get("needs", ""), "question" in item)


def _selection(words: Any) -> str:
    # The longest first: a regular expression takes the first that fits.
    return "(?:" + "|".join(sorted(map(re.escape, words), key=lambda w: (-len(w), w))) + ")"


def _words(words: list[str], *, whole: bool) -> re.Pattern[str]:
    if not words:
        return re.compile(r"(?!)")
    edge = r"(?!\w)" if whole else ""
    before = r"(?<!\w)" if whole else ""
    return re.compile(f"{before}{_selection(words)}{edge}", re.IGNORECASE)


def _gerunds(verb: str) -> tuple[str, ...]:
    stem = verb[:-1] if verb.endswith("e") and not verb.endswith("ee") else verb
    return (f"{stem}ing", f"{verb}{verb[-1]}ing")
