"""Django's autodiscovery of admins imports this module, which imports every page: a page registers itself on import."""

from __future__ import annotations

from importlib import import_module
from pkgutil import walk_packages

import console

for module in walk_packages(console.__path__, f"{console.__name__}."):
    if module.name != __name__:
        import_module(module.name)
