from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
import uvloop


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Workers run on uvloop, everything else on asyncio's own loop."""
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
