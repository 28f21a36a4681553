"""The local writer's notes of a transcript, made in this process as the daemon makes them."""

from memd.core.settings import NotesSettings
from memd.extract.candidates import statements
from memd.notes import local, sections, templates
from memd.notes.facts import SessionFacts
from memd.transcripts.stream import TranscriptStream


def local_notes(path: str) -> str:
    """Return the notes of a transcript, without the last line that has the cursor."""
    facts, stream, complete = SessionFacts(statements), TranscriptStream(path), False
    while not complete:
        part = stream.more()
        complete = part.complete
        for piece in part.pieces:
            facts.add(piece)
    empty = sections.parse(templates.chosen_template(NotesSettings(), "/nonexistent").text)
    return sections.rendered(local.with_new_lines(empty, local.lines(facts)))
