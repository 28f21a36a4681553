"""How a person's sentence becomes a memory."""

from hypothesis import given
from hypothesis import strategies as st

from memd.core import limits
from memd.core.names import check_name
from memd.core.values import MemoryType
from memd.documents import document
from memd.documents.index import of_memory, pointer_line
from memd.extract.candidates import Candidate
from tests.extract.statements import word

AT = 1_772_550_000.0  # 2026-03-03, a Tuesday


def candidate(text: str, kind: MemoryType = MemoryType.FEEDBACK) -> Candidate:
    """Return a candidate of some words."""
    return Candidate(kind, text, AT)


def test_the_sentence_stays_and_is_its_own_evidence() -> None:
    """The body says it with absolute dates and quotes the person's own words."""
    worded = word(candidate("we freeze merges after Thursday", MemoryType.PROJECT))
    assert worded.body == (
        "we freeze merges after Thursday (2026-03-05)\n\n"
        '**Said:** "we freeze merges after Thursday" (2026-03-03)\n'
    )
    assert worded.path == "project_we-freeze-merges-after-thursday.md"


def test_a_taken_path_is_not_used_again() -> None:
    """Another memory of the same name gets a name of its own."""
    first = word(candidate("never force-push the branch"))
    other = word(candidate("never force-push the branch"), {first.path.casefold()})
    assert other.path != first.path


def test_a_name_has_plain_words_alone() -> None:
    """Neither numbers nor tokens get into a file's name; other scripts are named by a hash."""
    worded = word(candidate("deploy tokens like ghp4x9Zq77 rotate weekly at 0815"))
    assert worded.path == "feedback_deploy-tokens-like-rotate-weekly-at.md"
    assert word(candidate("提交信息都用英文写")).path.startswith("feedback_note-")
    spoken = word(candidate("From now on always use tabs in Go files.")).path
    assert spoken == "feedback_from-now-on-always-use-tabs-in-go-files.md"


@given(st.text(min_size=1), st.sampled_from(MemoryType))
def test_any_words_become_a_valid_memory(text: str, kind: MemoryType) -> None:
    """Whatever was said, name, description and index line are valid and within their bounds."""
    worded = word(candidate(text, kind))
    check_name(worded.path)
    pointer = of_memory(worded.name, worded.description)
    assert len(pointer_line(worded.path, pointer)) < limits.INDEX_HOOK_CHARACTERS + 300
    if worded.description:
        assert document.validate(worded.content, worded.path).type is kind
