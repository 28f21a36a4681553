"""What stands in a memory and in the index: frontmatter, entries, merging, credentials. Pure.

Doors: ``document``, ``index``, ``secrets``.
"""
