"""Which memories fit a text: one index for each directory, one ranker, one cache on disk.

Doors: ``index`` (what is searched), ``ranking`` (what comes out), ``meaning`` (the optional model).
"""
