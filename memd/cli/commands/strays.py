"""agent merge: memories of sub-agents that lie where their client was started."""

from memd.cli.invocation import Invocation


def merge(invocation: Invocation) -> int:
    """Take them to the project, or say what would be; 1 where something could not be taken."""
    answer = invocation.request()
    lines, left = [], False
    for stray in answer["strays"]:
        if invocation.options.dry_run:
            lines.append(f"{stray['directory']} would go to {stray['target']}")
        where = f"went to {stray['target']}"
        lines += [f"{stray['directory']}/{path} {where}" for path in stray["merged"]]
        for sentence in stray["left"]:
            left = True
            invocation.screen.error(f"left in {stray['directory']}: {sentence}")
    if not answer["strays"]:
        invocation.screen.note("nothing lies astray")
    invocation.screen.answer(answer, "\n".join(lines))
    return 1 if left else 0
