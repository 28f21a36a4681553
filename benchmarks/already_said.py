"""``make bench-said``: what memd takes for already said in instruction files, and how fast.

Counted on ``tests/instructions/said``, which was written without knowledge of the rule: the files
that its bounds were chosen by (odd numbers), the others, and those of ``first_sight``, which were
written when the rule was done. Then on texts that are made of the first ones: a statement with one
word exchanged for another of its file, a paraphrase with the next number, with an exception, with a
denial, and joined to one that is news. All but the repeats are news. The times are the processor's,
for files of 100,000 characters together.
"""

import random
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from memd.instructions.repeats import covered
from memd.text.words import word_list, words

DATA = Path(__file__).parents[1] / "tests" / "instructions" / "said"
FIRST_SIGHT = DATA / "first_sight"
_WORD = re.compile(r"[^\W\d_][\w-]{2,}")
_CHARACTERS = 100_000
_AUXILIARIES = re.compile(r"\b(?:must|should|are|is)(?= (?!n't|not|no|only))")


def rows(name: str, folder: Path = DATA) -> list[list[str]]:
    """Return the rows of a table."""
    return [line.split("\t") for line in (folder / name).read_text("utf-8").splitlines()[1:]]


def exchanged(statement: str, text: str, rng: random.Random) -> Iterator[str]:
    """Yield a statement with each of its words in turn exchanged for one of the file."""
    others = sorted(filter(_counts, set(_WORD.findall(text)) - set(_WORD.findall(statement))))
    for match in _WORD.finditer(statement):
        if _counts(match.group()):
            yield f"{statement[: match.start()]}{rng.choice(others)}{statement[match.end() :]}"


def _counts(word: str) -> bool:
    """Return whether a word says something, in whichever language."""
    return bool(words(word)) and word.lower() not in word_list("grammar.txt")


def made(rng: random.Random) -> dict[str, list[tuple[str, str]]]:
    """Return by kind the texts that are made, each with the file that it is about."""
    kinds: dict[str, list[tuple[str, str]]] = {
        "one word exchanged": [], "the next number": [], "an exception": [],
        "denied": [], "joined to what is news": [],
    }  # fmt: skip
    texts, fresh = files(), rows("fresh.tsv")
    for name, statement, candidate in rows("repeats.tsv"):
        nouns = [*filter(_counts, _WORD.findall(texts[name]))]
        plain = candidate.rstrip(".")
        kinds["one word exchanged"] += [(name, s) for s in exchanged(statement, texts[name], rng)]
        kinds["an exception"].append((name, f"{plain} except for the {rng.choice(nouns)}."))
        number = re.search(r"\d+", candidate)
        if number:
            start, end = number.span()
            after = f"{candidate[:start]}{int(number.group()) + 1}{candidate[end:]}"
            kinds["the next number"].append((name, after))
        denied = _AUXILIARIES.sub(r"\g<0> not", candidate, count=1)
        if denied != candidate:
            kinds["denied"].append((name, denied))
        other = rng.choice([news for of, news, _ in fresh if of == name])
        joined = f"{plain} and {other[:1].lower()}{other[1:]}"
        kinds["joined to what is news"].append((name, joined))
    return kinds


def files(folder: Path = DATA) -> dict[str, str]:
    """Return the instruction files by their names."""
    return {path.name: path.read_text("utf-8") for path in sorted((folder / "files").iterdir())}


def at_first_sight() -> Iterator[str]:
    """Yield the lines of the set that was written when the rule was done."""
    says = {name: covered({name: text}) for name, text in files(FIRST_SIGHT).items()}
    for kind, name, place in (("repeats", "repeats.tsv", 2), ("news", "fresh.tsv", 1)):
        table = rows(name, FIRST_SIGHT)
        said = sum(bool(says[row[0]](row[place])) for row in table)
        yield f"| {kind}, written when the rule was done | {said} of {len(table)} |"


def main() -> int:
    """Print the counts and the times."""
    texts = files()
    says = {name: covered({name: text}) for name, text in texts.items()}
    repeats, fresh = rows("repeats.tsv"), rows("fresh.tsv")
    print("| | taken for already said |\n|---|---|")
    for half, odd in (("files that the bounds were chosen by", 1), ("held out", 0)):
        for kind, table, place in (("repeats", repeats, 2), ("news", fresh, 1)):
            of = [row for row in table if int(row[0][:2]) % 2 == odd]
            said = sum(bool(says[row[0]](row[place])) for row in of)
            print(f"| {kind}, {half} | {said} of {len(of)} |")
    for line in at_first_sight():
        print(line)
    for kind, pairs in made(random.Random(7)).items():  # noqa: S311 - the same texts each time
        said = sum(bool(says[name](text)) for name, text in pairs)
        print(f"| made: {kind} | {said} of {len(pairs)} |")
    many = {f"{n}/{name}": f"{text}\n{n}" for n in range(9) for name, text in texts.items()}
    while sum(map(len, many.values())) > _CHARACTERS:
        many.popitem()
    begun = time.process_time()
    every = covered(many)
    built = time.process_time()
    candidates = [row[2] for row in repeats] + [row[1] for row in fresh]
    for candidate in candidates:
        every(candidate)
    each = (time.process_time() - built) / len(candidates)
    print(f"\n{(built - begun) * 1000:.0f} ms to read them, {each * 1000:.2f} ms a candidate")
    return 0


if __name__ == "__main__":
    sys.exit(main())
