"""What assistants' hooks send, and what they get to print.

Doors: ``service`` and what it is made of, ``dialects``. Longer than planned: notices, messages and
rules come in the same answers.
"""
