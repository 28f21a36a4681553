"""Memory directories: projects, documents, the index, and the one way to change a file."""
