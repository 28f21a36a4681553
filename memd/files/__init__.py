"""Files beneath a directory: opening safely, replacing whole, bringing to the disk."""
