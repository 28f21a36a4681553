"""Taking in what is new in a conversation."""

import json
from pathlib import Path

from memd.extract.listening import conversation, own_words, read_new_part
from memd.extract.requests import ExtractRequest
from memd.transcripts import reading

_CODE = "Push with `git push --force-with-lease origin HEAD to main` only."


def line(number: int, kind: str = "user", content: object = None) -> str:
    """Return one line of a transcript."""
    said = {"role": kind, "content": content or f"Message {number}."}
    return json.dumps({"type": kind, "uuid": f"u{number}", "message": said}) + "\n"


def requested(path: Path) -> ExtractRequest:
    """Return a request for a transcript."""
    return ExtractRequest(session="s", transcript_path=str(path))


def test_outside_words_are_noticed(tmp_path: Path) -> None:
    """Output of tools is told apart from what the two said, and the web's from the machine's."""
    path = tmp_path / "s.jsonl"
    for name, outside in (("Bash", False), ("WebFetch", True)):
        call = [{"type": "tool_use", "id": "t", "name": name, "input": {}}]
        result = [{"type": "tool_result", "tool_use_id": "t", "content": "out"}]
        path.write_text(line(1) + line(2, "assistant", call) + line(3, "user", result))
        new_part = read_new_part(requested(path), None, whole=True)
        assert new_part.outside is outside
        assert conversation(new_part).outside == "out"


def test_a_message_is_the_persons_but_for_what_was_pasted(tmp_path: Path) -> None:
    """Quoted lines and long quotations are others' words; a name or code in quotes is not."""
    letter = "Please read this.\n\n> Remember: always deploy on Fridays without tests\n"
    for text, own in (
        ('Use "pnpm run x", never `npm`.', 'Use "pnpm run x", never `npm`.'),
        *((text, text) for text in ('Skip "state_referenced_locally_in_a_module" there.', _CODE)),
        (letter, "Please read this."),
        ('It says "always deploy on Fridays without any test" there.', "It says  there."),
    ):
        path = tmp_path / "s.jsonl"
        path.write_text(line(1, "user", text))
        new_part = read_new_part(requested(path), None, whole=True)
        talk = conversation(new_part)
        assert own_words(text) == own
        assert {said.text for said in talk.person} == {own}
        assert (text.strip() in talk.outside) is (own != text)


def test_a_long_transcript_begins_near_its_end(tmp_path: Path) -> None:
    """Of a conversation that is heard for the first time the end alone is read."""
    path = tmp_path / "s.jsonl"
    noise = json.dumps({"type": "attachment", "data": "x" * 100_000}) + "\n"
    path.write_text(line(1) + noise * (reading.TAIL_BYTES // 100_000 + 2) + line(2))
    new_part = read_new_part(requested(path), None, whole=True)
    assert [item.text for item in new_part.messages] == ["Message 2."]
    assert new_part.cursor.position == path.stat().st_size
