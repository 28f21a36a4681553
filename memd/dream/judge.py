"""What a dream did to the memories, computed and not believed, and whether it may stand. Pure.

Rules of this file (spec 5.3: nothing evaporates)
- Each memory that was there before is there after, or lies within a named one, or was removed for
  a stated reason. "Within" is checked sentence by sentence; a claim counts for nothing.
- A ``user`` or ``feedback`` memory goes only into another one; no reason is good enough.
- A damaged file is not touched. A "Why" is not lost.
- A dream that drops more than a third of the memories is not let through.
"""

import re
from collections.abc import Mapping, Sequence

from memd.core.values import MemoryType
from memd.dream.similarity import Text, covered
from memd.dream.verdict import Merge, Removal, Verdict, Wanted
from memd.store.document import Document, parse
from memd.store.names import INDEX

MANY = 4  # of fewer memories than this a third says nothing
_PART = 3
_WHY = "**Why:**"
_DATE = re.compile(r"\s?\((?:week of )?\d{4}-\d\d-\d\d\)")  # as core/dates.py puts it
_LASTING = (MemoryType.USER, MemoryType.FEEDBACK)


def judge(before: Mapping[str, bytes], total: int, wanted: Wanted) -> Verdict:
    """Return what the edits do to the memories.

    ``before`` holds every file that an edit or a merge names; ``total`` is how many memories
    there were.
    """
    texts = {path: parse(content, path) for path, content in before.items()}
    after = dict(texts)
    for edit in wanted.edits:
        if edit.content is not None:
            after[edit.path] = parse(edit.content, edit.path)
        else:
            after.pop(edit.path, None)
    claims = {merge.source: merge for merge in wanted.merges}
    changed = [e.path for e in wanted.edits if e.path != INDEX and e.content is not None]
    problems = [f"{path} is damaged and would be touched" for path in _damaged(wanted, texts)]
    problems += [
        f"{path} would lose its reason"
        for path in changed
        if path in texts and _WHY in texts[path].body and _WHY not in after[path].body
    ]
    merged: list[Merge] = []
    removed: list[Removal] = []
    for path in sorted(texts.keys() - after.keys()):
        claim = claims.get(path)
        if claim is not None and claim.into in after and holds(after[claim.into], texts[path]):
            merged.append(claim)
            continue
        reason = wanted.reasons.get(path, "")
        removed.append(Removal(path, reason))
        problems += _unaccounted(path, texts[path], reason, claim)
    if total >= MANY and _PART * len(removed) > total:
        problems.append(f"{len(removed)} of {total} memories would be dropped")
    return Verdict(
        changed=tuple(changed),
        merged=tuple(merged),
        removed=tuple(removed),
        problems=tuple(problems),
    )


def _damaged(wanted: Wanted, texts: Mapping[str, Document]) -> list[str]:
    return [e.path for e in wanted.edits if e.path in texts and texts[e.path].damaged]


def holds(target: Document, source: Document) -> bool:
    """Whether a memory says everything that another one said; it may say dates more exactly."""
    says = {form for name in _says(target) for form in (name, _DATE.sub("", name))}
    if not Text(source.body).sentences.keys() <= says:
        return False
    rest = [raw for name, raw in Text(source.description).sentences.items() if name not in says]
    return covered(" ".join(rest), Text(f"{target.description}\n\n{target.body}"))


def _says(document: Document) -> dict[str, str]:
    return Text(document.body).sentences | Text(document.description).sentences


def _unaccounted(path: str, old: Document, reason: str, claim: Merge | None) -> Sequence[str]:
    if claim is not None:
        return [f"{path} is said to be in {claim.into}, which does not say everything it said"]
    if old.type in _LASTING:
        return [f"{path} is a {old.type} memory and would go without going into another"]
    return [] if reason else [f"{path} would go without a reason"]
