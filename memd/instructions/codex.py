"""Which files Codex loads: so far only AGENTS.md of each folder on the way. Pure."""

import posixpath

from memd.instructions.loading import Loading, folders_down
from memd.instructions.values import InstructionDisk, InstructionFile, Resolution, ViewRequest


def resolve(request: ViewRequest, disk: InstructionDisk) -> Resolution:
    """Return what Codex loads."""
    loading = Loading(request, disk)
    for folder in folders_down(request.root, request.cwd):
        file = InstructionFile(posixpath.join(folder, "AGENTS.md"), "agents", "project")
        text = loading.fetch(file, (folder, request.root))
        if text is not None:
            loading.load(file, text)
    return loading.result()
