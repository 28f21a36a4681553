"""memd: the one place where a person's AI assistants keep what they have learned."""

__version__ = "0.1.0"
