"""Durable background jobs: one lane per project, coalesced per session."""
