"""Finds the fake of each provider: every `FAKE…` of the modules of this folder.

A fake for a new provider is found by its name alone; `tests/integrations/adapters` fails for a provider without one.
"""

from __future__ import annotations

import dataclasses
import pkgutil
from collections.abc import Iterator, Mapping
from enum import StrEnum
from importlib import import_module
from typing import cast

from integrations.providers.openai.dialect import Dialect
from integrations.registry import adapter_for, providers
from tests.fakes import dialects
from tests.fakes.dialects.openai import OpenAIFake
from tests.fakes.dialects.story import FakeDialect


def _fakes() -> Iterator[FakeDialect]:
    """`FAKE` or `<SOMETHING>_FAKE` is one fake, `FAKES` a mapping by provider."""
    for module in pkgutil.iter_modules(dialects.__path__):
        if module.name in ("registry", "server", "story"):
            continue
        for name, value in vars(import_module(f"{dialects.__name__}.{module.name}")).items():
            if name == "FAKES":
                yield from cast("Mapping[str, FakeDialect]", value).values()
            elif name == "FAKE" or name.endswith("_FAKE"):
                yield cast("FakeDialect", value)


FAKES: dict[str, FakeDialect] = {fake.provider: fake for fake in _fakes()}


def distinct_providers() -> tuple[str, ...]:
    """Returns the providers in the registry's order, one per different row.

    Rows of OpenAI's dialect that differ from an earlier one only in name, address and models are left out: a test of
    one holds for the other. Providers without a fake stay. `tests/integrations/test_compatible_rows.py` tests every row
    for its differences.
    """
    first: dict[object, str] = {}
    for provider in providers():
        first.setdefault(_kind(provider), provider)
    return tuple(first.values())


def _kind(provider: str) -> object:
    row, fake = adapter_for(provider).traits, FAKES.get(provider)
    if not isinstance(row, Dialect) or not row.page or not isinstance(fake, OpenAIFake):
        return provider
    # Lists of names, of models or parameters, do not make another kind of row.
    features = [value for value in dataclasses.astuple(row) if isinstance(value, bool | StrEnum)]
    return tuple(features), row.functions, repr(dataclasses.replace(fake.vendor, path="", key=""))
