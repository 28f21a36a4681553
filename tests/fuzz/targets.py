"""All doors that are fuzzed, by name, and the module of each: one process needs one of them."""

from importlib import import_module

from tests.fuzz.target import Target

_DOORS = {
    "wire": ("framing", "envelope", "session"),
    "texts": ("memory", "index", "settings", "notes", "command line", "credentials"),
    "recorded": ("claude code", "codex", "gemini"),
    "replies": ("model reply", "model text"),
    "hooks": ("hook payload", "hook answer", "rule"),
    "imports": ("archive", "file of a tool", "team page"),
    "live": ("daemon",),
}
NAMES = tuple(name for names in _DOORS.values() for name in names)


def target(name: str) -> Target:
    """Return a door; imports what it needs."""
    module = next(module for module, names in _DOORS.items() if name in names)
    doors: dict[str, Target] = import_module(f"tests.fuzz.{module}").TARGETS
    return doors[name]
