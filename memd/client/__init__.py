"""Clients of the socket: blocking and async, and starting a daemon when none runs."""
