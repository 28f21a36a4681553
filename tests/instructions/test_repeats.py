"""What stands in instruction files."""

import pytest

from memd.instructions.repeats import covered

FILES = {
    "/p/CLAUDE.md": "# Rules\n- Deploys go out on **Thursdays**.\n\nNever push to main.\n",
    "/p/AGENTS.md": "Not allowed:\n- Commit generated files.\n\nRun `make check` first.\n",
}


@pytest.mark.parametrize(
    ("text", "file"),
    [
        ("Deploys go out on Thursdays.", "/p/CLAUDE.md"),
        ("deploys go out on Thursdays", "/p/CLAUDE.md"),
        ("Run `make check` first. Never push to main.", "/p/AGENTS.md"),
        ('Never push to main.\n\n**Said:** "no pushes" (2026-03-03)\n', "/p/CLAUDE.md"),
        ("Push to main.", ""),
        ("Deploys go out on Fridays.", ""),
        ("Never push to main. Never on Fridays.", ""),
        ("Commit generated files.", ""),
        ("", ""),
    ],
)
def test_only_whole_sentences_stand_in_a_file(text: str, file: str) -> None:
    """Each sentence of a text stands there in the same words, and under no denial."""
    assert covered(FILES)(text) == file
