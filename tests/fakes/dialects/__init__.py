"""Fake providers, one module each, which answer with the same stories in their own dialects (see `story.py`).

`FAKES` lists the fakes for the suite over all adapters: a provider of the registry without a fake fails the suite.
"""
