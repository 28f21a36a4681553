"""Search: find the memories that fit a text, with one index for each directory and one ranker.

Doors: ``index`` (the index), ``ranking`` (the results).
"""
