"""metrics and debug over the socket."""

import json
from typing import Any

import pytest

from memd.api.table import methods
from memd.cli import open_metrics
from memd.client.errors import RemoteError
from tests.api.caller import Caller
from tests.canaries import CANARY, SAID, files, plant
from tests.metrics_text import parsed

pytestmark = pytest.mark.anyio


REFUSED = [
    "memory.write name_refused",
    "memory.read not_found",
    "extract transcript_refused",
    "no.such.canary unknown_method",
    "hook invalid_params",
]


class Anyhow:
    """Calls methods whether or not they fail."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self.failed: list[str] = []

    async def any(self, method: str, **params: Any) -> Any:
        """Call a method; a failure is no answer."""
        try:
            return await self._caller.client.call(method, params)
        except RemoteError as error:
            self.failed.append(f"{method} {error.kind}")
            return None


async def families(caller: Caller) -> dict[str, dict[str, Any]]:
    """Return the families of metrics by name."""
    return {each["name"]: each for each in (await caller.plain("metrics"))["families"]}


async def by(caller: Caller, name: str, label: str) -> dict[str, float]:
    """Return the values of one family by one label."""
    samples = (await families(caller))[name]["samples"]
    return {sample["labels"][label]: sample["value"] for sample in samples}


async def test_each_request_is_timed_by_its_method(caller: Caller) -> None:
    """Answers and errors count under their method, and what is no method under one label."""
    await caller.write()
    for name in ("no.such", "neither.this", "memory.read"):
        await caller.refused(name, path="missing.md")
    times = (await families(caller))["memd_request_seconds"]
    counts = {each["labels"]["method"]: sum(each["counts"]) for each in times["samples"]}
    assert counts == {"hello": 1, "memory.write": 1, "memory.read": 1, "other": 2}
    assert {len(each["counts"]) for each in times["samples"]} == {len(times["bounds"]) + 1}
    errors = (await families(caller))["memd_request_errors"]["samples"]
    kinds = {(each["labels"]["method"], each["labels"]["kind"]): each["value"] for each in errors}
    assert kinds == {("memory.read", "not_found"): 1, ("other", "unknown_method"): 2}


async def test_extractions_are_counted_by_outcome(caller: Caller) -> None:
    """What was kept and what was skipped, with the reason, since the start."""
    spoken = [{"role": "user", "content": SAID}]
    for session in ("a", "a", "b"):
        await caller.call("extract", session_id=session, messages=spoken, wait=True)
    await caller.call("extract", session_id="c", messages=[], wait=True)
    outcomes = await by(caller, "memd_extractions", "outcome")
    assert sum(outcomes.values()) == 4
    assert outcomes["completed"] >= 1
    assert outcomes["nothing_new"] >= 1
    assert (await by(caller, "memd_extracted_memories", "fate"))["saved"] == 1


async def test_caches_and_sizes_are_told(caller: Caller) -> None:
    """A second look needs no file; memories, jobs, suggestions and the process have numbers."""
    await caller.write()
    for _ in range(3):
        await caller.call("memory.list")
        await caller.call("prefetch", session_id="s", query="integration tests database")
        await caller.call("instructions.read")
    hits = await by(caller, "memd_cache_hits", "cache")
    lookups = await by(caller, "memd_cache_lookups", "cache")
    assert all(0 < hits[name] < lookups[name] for name in ("catalogue", "index", "instructions"))
    told = await families(caller)
    assert told["memd_memories"]["samples"][0]["value"] == 1
    for name in ("memd_journal_bytes", "process_resident_memory_bytes", "process_threads"):
        assert told[name]["samples"][0]["value"] > 0
    uses = [told[name]["samples"][0]["value"] for name in ("memd_surfaced", "memd_read")]
    assert uses == [1, 0]
    assert (await by(caller, "memd_suggestions", "fate"))["open"] == 0
    assert told["memd_connections"]["samples"][0]["value"] == 1


async def test_a_parser_of_openmetrics_takes_the_text(caller: Caller) -> None:
    """Every family has its type, its unit is the end of its name, and the text is whole."""
    await caller.write()
    answer = await caller.plain("metrics")
    shown = open_metrics.text(answer["families"])
    read = parsed(shown)
    assert list(read) == [family["name"] for family in answer["families"]]
    assert read["memd_request_seconds"].type == "histogram"


async def test_no_text_of_a_person_is_in_the_numbers(caller: Caller) -> None:
    """Whatever was written, asked, named or refused, neither metrics nor debug shows a word."""
    files(caller.home.path, caller.home.places.config)
    cwd = caller.home.project("canary-project")
    everything = Anyhow(caller)
    await plant(everything, cwd)
    assert everything.failed == REFUSED
    shown = {name: json.dumps(await caller.plain(name)) for name in ("metrics", "debug")}
    for words in shown.values():
        assert CANARY not in words.lower()
        assert caller.home.path not in words
    named = {
        each["labels"]["method"] for each in json.loads(shown["metrics"])["families"][0]["samples"]
    }
    assert named <= {row.name for row in methods()} | {"other"}
    debug = json.loads(shown["debug"])
    assert debug["settings"]["model.recall"] == "(set)"
    assert (debug["settings"]["recall.limit"], debug["settings"]["messages.peers"]) == (5, 1)
    assert debug["settings_problems"] == 2
    assert debug["checks"]["settings"] == "warning"
    assert debug["state"]["rows"]["changes"] >= 1
