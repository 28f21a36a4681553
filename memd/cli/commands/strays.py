"""agent merge: move memories of sub-agents from subdirectories to the project they belong to."""

from memd.cli.invocation import Invocation


def merge(invocation: Invocation) -> int:
    """Move the memories, or with ``--dry-run`` print which; return 1 if some could not be moved."""
    answer = invocation.request()
    lines, some_are_left = [], False
    for stray in answer["strays"]:
        if invocation.options.dry_run:
            lines.append(f"{stray['directory']} would go to {stray['target']}")
        target = f"went to {stray['target']}"
        lines += [f"{stray['directory']}/{path} {target}" for path in stray["merged"]]
        for sentence in stray["left"]:
            some_are_left = True
            invocation.screen.error(f"left in {stray['directory']}: {sentence}")
    if not answer["strays"]:
        invocation.screen.note("nothing lies astray")
    invocation.screen.answer(answer, "\n".join(lines))
    return 1 if some_are_left else 0
