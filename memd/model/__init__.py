"""Language models: the interface that rooms use, and the servers and programs behind it.

Longer than planned: servers of two forms, programs of the person's with their processes, and the
breaker of jobs and prompts are here.
Doors: ``port`` (the interface), ``errors``, ``configured`` (the model that the settings name).
"""
