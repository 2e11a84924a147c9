"""One fake provider a module, each in its own dialect, all telling the same stories (see `story.py`).

`FAKES` is what the suite over all adapters runs on: a provider of the registry without a row in it fails the suite.
"""
