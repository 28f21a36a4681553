"""load-prompt and prefetch: what a client puts before a model."""

import os

from memd.cli.invocation import Invocation


def load_prompt(invocation: Invocation) -> None:
    """Print the memory section of a system prompt."""
    options = invocation.options
    loaded = invocation.ask(
        "load_prompt",
        session_id=options.session,
        mode=options.mode,
        agent=options.agent,
        scope=options.scope,
        skip_index=options.skip_index or None,
        extra_guidelines=options.extra_guidelines,
    )
    if loaded["prompt"] is None:
        invocation.screen.note(f"memory is off here: {loaded.get('reason') or 'no reason given'}")
    for problem in loaded.get("problems") or ():
        invocation.screen.note(problem)
    invocation.screen.answer(loaded, loaded["prompt"] or "")


def prefetch(invocation: Invocation) -> None:
    """Print the block of memories that goes with a prompt."""
    options = invocation.options
    found = invocation.ask(
        "prefetch",
        session_id=options.session or f"memctl-{os.urandom(6).hex()}",
        query=" ".join(options.query),
        recent_tools=options.tool,
        read_paths=[os.path.abspath(path) for path in options.read] if options.read else None,
        limit=options.limit,
        strategy=options.strategy,
    )
    if not found["memories"]:
        why = found.get("skipped")
        invocation.screen.note(f"skipped: {why}" if why else "no memory fits")
    invocation.screen.answer(found, found["block"])
