"""The manual pages in docs/man, written by ``make docs`` from what ``--help`` is made of.

A page is rendered from a parser: its usage, description, options, commands and epilog. The words of
memctl that have verbs have pages of their own, as ``man memctl team`` finds them. Texts are plain:
a line that begins with a space is printed as it is, a line like ``exit status:`` is a heading.
"""

import argparse
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from memd import __version__
from memd.__main__ import USAGE
from memd.base.settings import declared
from memd.cli import arguments
from memd.server import command as server
from tools import manual_texts

_ALL = "memctl(1), memd(1), memd.toml(5), memd-team(1)"
_WIDTH = 72
ROOT = Path(__file__).resolve().parents[1]
_RELEASED = re.compile(r"^## \S+ \S (\S+)", re.MULTILINE)
_HEADING = re.compile(r"[a-z ]+:")
_TERM = re.compile(r"([A-Z_]{6,}|[~/]\S+): (.*)")  # a variable or a file, and what it is
# What a terminal would show as another character, or roff take for an order.
_ROFF = {
    "\\": r"\e",
    "-": r"\-",
    "'": r"\(aq",
    "`": r"\(ga",
    "^": r"\(ha",
    "~": r"\(ti",
    '"': r"\(dq",
}


def pages() -> dict[str, str]:
    """Return all pages by the names of their files."""
    memctl = arguments.parser()
    groups = {word: child for word, child in _children(memctl) if _has_children(child)}
    names = ", ".join(f"memctl-{word}(1)" for word in groups)
    result = {
        "memctl.1": _page(
            memctl, "the command line of memd", manual_texts.MEMCTL, f"{_ALL}, {names}", split=True
        ),
        "memd-team.1": _page(server.parser(), "the server of memd's team memory"),
        "memd.1": _daemon(),
        "memd.toml.5": _settings(),
    }
    for word, child in groups.items():
        result[f"memctl-{word}.1"] = _page(child, _summary(word, child))
    return result


def _page(
    parser: argparse.ArgumentParser,
    summary: str,
    more: str = "",
    see: str = _ALL,
    *,
    split: bool = False,
) -> str:
    """Return the page of a program; with ``split`` commands that have commands are only named."""
    name = parser.prog.replace(" ", "-")
    parts = [_head(name, 1, summary), ".SH SYNOPSIS\n", *_synopsis(parser)]
    parts += [".SH DESCRIPTION\n", _prose(parser.description or "")]
    parts += _options(parser, ".SH OPTIONS\n")
    if children := _children(parser):
        parts.append(".SH COMMANDS\n")
        parts += [part for word, child in children for part in _command(word, child, split=split)]
    parts += [_prose(_epilog(parser), ".SH"), _prose(more, ".SH"), _see(f"{name}(1)", see)]
    return _tidy(parts)


def _daemon() -> str:
    """Return the page of memd, whose help is a text."""
    synopsis, _, rest = USAGE.partition("\n\n")
    lines = textwrap.dedent(synopsis.replace("usage:", "      ")).splitlines()
    parts = [_head("memd", 1, "the daemon that keeps memories"), ".SH SYNOPSIS\n", _as_is(lines)]
    parts += [".SH DESCRIPTION\n", _prose(rest), _prose(manual_texts.MEMD, ".SH")]
    return _tidy([*parts, _see("memd(1)", _ALL)])


def _settings() -> str:
    """Return the page of the settings file."""
    parts = [_head("memd.toml", 5, "the settings of memd"), _prose(manual_texts.SETTINGS, ".SH")]
    for section, options in groupby(declared(), lambda option: option[0].rpartition(".")[0]):
        parts.append(f".SH [{section}]\n" if section else ".SH TOP OF THE FILE\n")
        for name, default, words in options:
            shown = str(default).lower() if isinstance(default, bool) else str(default)
            shown = str([*default]) if isinstance(default, tuple) else shown
            value = f" = {_roff(shown)}" if shown else ""
            parts.append(f".TP\n\\fB{_roff(name.rpartition('.')[2])}\\fR{value}\n{_prose(words)}")
    return _tidy([*parts, _see("memd.toml(5)", _ALL)])


def _command(word: str, child: argparse.ArgumentParser, *, split: bool) -> Iterator[str]:
    """Yield the part of a page that is about one command, and about those behind it."""
    if split and _has_children(child):
        yield f".SS {_roff(child.prog)}\n{_sentence(_summary(word, child))}\n"
        yield f"See \\fBmemctl\\-{_roff(word)}\\fR(1).\n"
        return
    if not _has_children(child) or child.get_default("run"):
        yield f".SS {_roff(child.prog)}\n"
        yield from _synopsis(child)
        yield f".PP\n{_prose(child.description or '')}"
        yield from _options(child)
        if epilog := _epilog(child):
            yield f".PP\n{_prose(epilog)}"
    for inner, grandchild in _children(child):
        yield from _command(inner, grandchild, split=split)


def _synopsis(parser: argparse.ArgumentParser) -> Iterator[str]:
    usage = (parser.usage or "").replace("%%", "%")
    if usage:
        yield _as_is(usage.splitlines())
        return
    words = [parser.prog]
    for action in _actions(parser):
        shown = [*action.option_strings[-1:], *([_value(action)] if action.nargs != 0 else [])]
        words.append(f"[{' '.join(shown)}]" if action.option_strings else " ".join(shown))
    words += ["COMMAND ..."] if _has_children(parser) else []
    lines = textwrap.wrap("\0".join(words).replace(" ", "\1").replace("\0", " "), _WIDTH)
    yield _as_is([line.replace("\1", " ") for line in lines])


def _options(parser: argparse.ArgumentParser, heading: str = "") -> Iterator[str]:
    for action in _actions(parser):
        names = ", ".join(f"\\fB{_roff(name)}\\fR" for name in action.option_strings)
        value = f"\\fI{_roff(_value(action))}\\fR" if action.nargs != 0 else ""
        value = value.replace("|", r"|\:")  # a long list of choices may be broken there
        words = (action.help or "") + _choices(action)
        yield f"{heading}.TP\n{' '.join(filter(None, (names, value)))}\n{_prose(words)}"
        heading = ""


def _value(action: argparse.Action) -> str:
    metavar = action.metavar
    return metavar if isinstance(metavar, str) else action.dest.upper()


def _choices(action: argparse.Action) -> str:
    shown = action.choices and "|" not in _value(action)
    return f" ({', '.join(map(str, action.choices or ()))})" if shown else ""


def _actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Return operands and options that help shows, but for the one of help itself."""
    every = parser._actions  # noqa: SLF001 - argparse has no other way to list them
    hidden = (argparse._SubParsersAction, argparse._HelpAction)  # noqa: SLF001 - as above
    return [a for a in every if a.help != argparse.SUPPRESS and not isinstance(a, hidden)]


def _children(parser: argparse.ArgumentParser) -> list[tuple[str, argparse.ArgumentParser]]:
    """Return the commands of a parser, each by its first name."""
    actions = parser._actions  # noqa: SLF001 - argparse has no other way to list them
    names: Mapping[str, argparse.ArgumentParser] = {}
    for action in actions:
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - as above
            names = action.choices
    first = {id(child): word for word, child in reversed([*names.items()])}
    return [(word, child) for word, child in names.items() if first[id(child)] == word]


def _has_children(parser: argparse.ArgumentParser) -> bool:
    return bool(_children(parser))


def _summary(word: str, child: argparse.ArgumentParser) -> str:
    command = child.get_default("run")
    return command.summary if command else arguments.GROUPS[word]


def _epilog(parser: argparse.ArgumentParser) -> str:
    return (parser.epilog or "").replace(arguments.OF_EVERY_COMMAND, "").strip("\n")


def _head(name: str, section: int, summary: str) -> str:
    title = f'.TH {_roff(name.upper())} {section} "{_date()}" "memd {__version__}" "memd"\n'
    title += ".nh\n.ad l\n"  # names of commands and options are not to be hyphenated or spread
    return f'.\\" Generated by make docs.\n{title}.SH NAME\n{_roff(name)} \\- {_roff(summary)}\n'


def _date() -> str:
    """Return when this version was released, "" for one that is not."""
    match = _RELEASED.search((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    return match[1] if match and match[1] != "unreleased" else ""


def _see(own: str, pages: str) -> str:
    others = (
        re.sub(r"(.*)(\(\d\))", r"\\fB\1\\fR\2", _roff(p)) for p in pages.split(", ") if p != own
    )
    return ".SH SEE ALSO\n" + ",\n".join(others) + "\n"


def _tidy(parts: Sequence[str]) -> str:
    """Return a page without breaks of paragraphs where something else breaks it."""
    page = re.sub(r"(?:\.PP\n)+", ".PP\n", "".join(parts))
    page = re.sub(r"^(\.S[HS] .*\n)\.PP\n", r"\1", page, flags=re.MULTILINE)
    return re.sub(r"\.PP\n(?=\.(?:S[HS]|TP))", "", page)


def _prose(text: str, heading: str = "") -> str:
    """Return a plain text as roff; ``heading`` is the macro of its headings, "" for bold ones."""
    result = []
    for as_is, lines in groupby(text.strip("\n").splitlines(), lambda line: line.startswith(" ")):
        given = [*lines]
        if as_is:
            result.append(_as_is(textwrap.dedent("\n".join(given)).splitlines()))
            continue
        for line in given:
            if heading and _HEADING.fullmatch(line):
                result.append(f"{heading} {line[:-1].upper()}\n")
            elif match := _TERM.match(line):
                result.append(f".TP\n\\fB{_roff(match[1])}\\fR\n{_wrapped(match[2])}")
            else:
                result.append(_wrapped(line) if line else ".PP\n")
    return "".join(result)


def _wrapped(line: str) -> str:
    """Return a line of prose as roff, in short lines, none of which is an order."""
    lines = (_roff(part) for part in textwrap.wrap(line, _WIDTH, break_on_hyphens=False))
    return "".join(f"{_no_order(part)}\n" for part in lines)


def _as_is(lines: list[str]) -> str:
    shown = "".join(f"{_no_order(_roff(line))}\n" for line in lines)
    return f".PP\n.nf\n.RS 4\n{shown}.RE\n.fi\n"


def _no_order(line: str) -> str:
    return f"\\&{line}" if line.startswith(".") else line


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _roff(text: str) -> str:
    """Return a text so that it is printed as it is, in any encoding."""
    plain = "".join(_ROFF.get(char, char) for char in text)
    return re.sub(r"[^\x00-\x7f]", lambda match: f"\\[u{ord(match[0]):04X}]", plain)
