"""Where a person's own words end in a message: texts to be worked on, played roles. Pure.

Rules of this file
- "Write a note that says …", "translate: …", "here is the customer's mail" and "pretend you are …"
  open a frame: what follows in the message is material, and no word of it is the person's.
- A line that ends with a colon announces somebody's text, unless it says that rules come.
- A frame that holds its material in its own sentence takes that sentence along.
- A frame ends with the message. What stands behind a paste is lost with it: precision before
  recall.
The patterns are data, one group for each language (``cues/*.toml``, ``frame``).
"""

from collections.abc import Sequence

from memd.extract import cues
from memd.extract.sentences import Sentence


def outside(own: Sequence[Sentence]) -> tuple[Sentence, ...]:
    """Return the sentences that stand before the first frame, and its opening when that is said."""
    for number, sentence in enumerate(own):
        language = cues.of(sentence.text)
        # "Hmm, translate this": what is said before the point hides no frame.
        opening = language.openings.match(sentence.masked)
        plain = sentence.masked[opening.end() :] if opening else sentence.masked
        if language.requested.match(plain):
            continue  # "make a note: …" makes no note
        if language.task_frame.search(plain):
            return tuple(own[:number])
        announced = plain.endswith((":", "\uff1a")) and not language.own_list.search(plain)
        if announced or language.paste_frame.search(plain):
            return tuple(own[: number + 1])
    return tuple(own)
