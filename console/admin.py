"""Imports all modules of the console when Django looks for admins: a page registers itself when it is imported."""

from __future__ import annotations

from importlib import import_module
from pkgutil import walk_packages

import console

for module in walk_packages(console.__path__, f"{console.__name__}."):
    if module.name != __name__:
        import_module(module.name)
