"""Conversations as assistants record them: reading, sessions, forks."""
