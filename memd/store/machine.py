"""What the machine says of its processes and of how busy it is: the door of psutil.

Rules of this file
- psutil is imported at its first use: 5 MB and 20 ms that only a dream needs, not the start.
- Nothing here raises: what the system does not tell is unknown, which is a value.
"""

# psutil counts a start in clock ticks since boot and the clock may have been set since.
_TOLERANCE_SECONDS = 2.0


def alive(pid: int, since: float) -> bool:
    """Return whether this process runs and began before ``since`` (seconds since 1970)."""
    import psutil  # noqa: PLC0415 - see the rules of this file

    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        return bool(process.create_time() <= since + _TOLERANCE_SECONDS)
    except psutil.Error as error:
        return isinstance(error, psutil.AccessDenied)  # it exists, and we may not know more
