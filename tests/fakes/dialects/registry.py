"""Provider → the fake that speaks its dialect: every `FAKE…` of the modules of this folder.

A fake for a new provider is found by its name alone; `tests/integrations/adapters` fails for a provider without one.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import cast

from tests.fakes import dialects
from tests.fakes.dialects.story import FakeDialect


def _fakes() -> Iterator[FakeDialect]:
    """`FAKE` or `<SOMETHING>_FAKE` is one fake, `FAKES` a mapping of them by provider."""
    for module in pkgutil.iter_modules(dialects.__path__):
        if module.name in ("registry", "server", "story"):
            continue
        for name, value in vars(import_module(f"{dialects.__name__}.{module.name}")).items():
            if name == "FAKES":
                yield from cast("Mapping[str, FakeDialect]", value).values()
            elif name == "FAKE" or name.endswith("_FAKE"):
                yield cast("FakeDialect", value)


FAKES: dict[str, FakeDialect] = {fake.provider: fake for fake in _fakes()}
