"""Which directories other programs share a lock with."""
