"""Memories that are laid into a directory as files, as another program may."""

from pathlib import Path


def lay(folder: str, count: int) -> Path:
    """Write so many small memories into a folder, which is made, and return its path."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        head = f"name: m{number}\ndescription: memory {number}\nmetadata:\n  type: user"
        (place / f"m{number}.md").write_text(f"---\n{head}\n---\n\ntext {number}\n")
    return place
