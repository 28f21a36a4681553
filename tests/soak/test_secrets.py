"""G15: what the secret scanner finds, misses and wrongly finds, and how fast it is.

An honest note: the rules were tuned on this very corpus, and 20 of its false positives are known
by their hash as published samples (``published`` in secret_rules.toml). The figures say how well
the vendors' token shapes are covered, not how the scanner fares on text that nobody has seen.
"""

import gzip
import json
import random
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from memd.documents import secrets
from tests import corpora
from tests.documents.secret_samples import (
    LINES,
    ORDINARY,
    SENTENCES,
    broken,
    encoded,
)
from tests.documents.secret_samples import TOKENS as VENDORS
from tests.soak.figures import FIGURE

pytestmark = pytest.mark.soak
Record = Callable[[str, object], None]
CLEAN_BYTES = 450_000


def test_credentials_are_found_and_others_are_not(record_property: Record) -> None:
    """Of the vendors' token shapes 99 % are found, of the false ones at most 5 %."""
    path = corpora.folder("secrets") / "tps_fps.json.gz"
    rules = json.loads(gzip.decompress(path.read_bytes()))
    true = [text for rule in rules for text in rule["tps"]]
    false = [text for rule in rules for text in rule["fps"]]
    results = sum(bool(secrets.find(text)) for text in true)
    wrong = sum(bool(secrets.find(text)) for text in false)
    record_property(
        FIGURE,
        f"G15 secrets: {results} of {len(true)} true ones found ({results / len(true):.2%}),"
        f" {wrong} of {len(false)} false ones flagged ({wrong / len(false):.2%}); tuned on it",
    )
    assert results >= 0.99 * len(true)
    assert wrong <= 0.05 * len(false)


def test_shapes_of_our_own_are_found(record_property: Record) -> None:
    """Random tokens of documented shapes, and ordinary lines, both made by this project."""
    draw = random.Random(2026)  # noqa: S311 - made-up tokens, the same in every run
    rounds = 500
    kinds = {"tokens": VENDORS, "lines": LINES, "sentences": SENTENCES, "ordinary lines": ORDINARY}
    kinds["broken"], kinds["encoded"] = {"broken": broken}, {"encoded": encoded}
    reported, least = [], 1.0
    for kind, table in kinds.items():
        texts = [make(draw) for make in table.values() for _ in range(rounds)]
        results = sum(bool(secrets.find(text)) for text in texts)
        reported.append(f"{kind} {results} of {len(texts)}")
        share = results / len(texts)
        least = min(least, 1.0 - share if table is ORDINARY else share)
    record_property(FIGURE, f"secrets made by this project's own generators: {', '.join(reported)}")
    assert least >= 0.99


def test_clean_markdown_is_left_alone(record_property: Record) -> None:
    """450 kB of documentation have at most 20 findings, at half a second for each megabyte."""
    text = clean_markdown()
    secrets.find("warm up: token = x")
    begun = time.perf_counter()
    results = secrets.find(text)
    seconds = (time.perf_counter() - begun) / (len(text.encode()) / 1e6)
    rules = sorted({item.rule for item in results})
    record_property(
        FIGURE,
        f"G15 secrets: {len(results)} findings {rules} in {len(text.encode())} bytes of Markdown,"
        f" {seconds:.2f} s/MB",
    )
    assert len(results) <= 20
    assert seconds <= 0.5


def clean_markdown() -> str:
    """Return this project's documents and the descriptions of the installed packages, cut."""
    root = Path(__file__).parents[2]
    files = sorted((root / "docs").rglob("*.md")) + sorted(root.glob("*.md"))
    site = Path(sysconfig.get_path("purelib"))
    parts = [file.read_text() for file in files]
    parts += [
        file.read_text(errors="replace").partition("\n\n")[2]
        for file in sorted(site.glob("*.dist-info/METADATA"))
    ]
    text = "\n".join(parts)
    while len(text.encode()) < CLEAN_BYTES:  # few packages: the same text counts again
        text += text
    return text.encode()[:CLEAN_BYTES].decode(errors="ignore")
