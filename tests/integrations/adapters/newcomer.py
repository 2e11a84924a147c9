"""A minimal new provider: a row of the OpenAI dialect, added as CONTRIBUTING describes, for the duration of a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from integrations import registry
from integrations.providers.openai import compatible
from integrations.providers.openai.adapter import OpenAIAdapter
from integrations.providers.openai.dialect import Dialect
from tests.fakes.dialects.openai import OpenAIFake
from tests.fakes.dialects.registry import FAKES

NEWCOMER = "newcomer"
ROW = Dialect(NEWCOMER, "https://api.newcomer.example/v1", default_model="newcomer-large")
FAKE = OpenAIFake(NEWCOMER)


@contextmanager
def registered() -> Iterator[None]:
    """Adds the provider's row in `compatible.py`, as `registry.py` reads it, and its fake. Removes them."""
    with (
        patch.dict(compatible.ADAPTERS, {NEWCOMER: OpenAIAdapter(ROW)}),
        patch.dict(registry._ADAPTERS, {NEWCOMER: registry._COMPATIBLE}),
        patch.dict(FAKES, {NEWCOMER: FAKE}),
    ):
        yield
        registry.adapter_for.cache_clear()
