"""Values, errors, limits, settings, clock, text: no I/O and no opinions."""
