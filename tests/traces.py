"""Whether any file below a folder holds a text: as it is, as JSON writes it, or compressed."""

import json
import zlib
from pathlib import Path

_STARTS = (b"\x78\x01", b"\x78\x9c", b"\x78\xda")  # of the journal's streams, and of any other


def traces(folder: str | Path, text: str) -> list[str]:
    """Return the files below a folder that hold a text, in their names or in their raw bytes.

    Pages that a database does not use any more, and logs, are bytes like others. A compressed
    stream is unpacked from wherever one may begin, as far as it goes.
    """
    forms = {text.encode(), json.dumps(text)[1:-1].encode()}
    results = []
    for path in sorted(Path(folder).rglob("*")):
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        if text in str(path) or any(form in part for form in forms for part in _parts(content)):
            results.append(str(path))
    return results


def _parts(content: bytes) -> list[bytes]:
    parts = [content]
    for start in _STARTS:
        at = content.find(start)
        while at >= 0:
            parts.append(_unpacked(content[at:]))
            at = content.find(start, at + 1)
    return parts


def _unpacked(stream: bytes) -> bytes:
    unpack, results = zlib.decompressobj(), b""
    # A few bytes at a time: what is no stream, or a torn one, gives what was good before it broke.
    for at in range(0, len(stream), 64):
        try:
            results += unpack.decompress(stream[at : at + 64])
        except zlib.error:
            break
        if unpack.eof:
            break
    return results
