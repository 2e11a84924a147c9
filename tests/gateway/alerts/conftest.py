"""A running receiver of webhooks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytest_django import Settings

from tests.gateway.alerts.receiver import Receiver, receiver_at


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    with receiver_at() as address:
        yield address


@pytest.fixture
def receiver(server: str, settings: Settings) -> str:
    Receiver.statuses.clear()
    Receiver.received.clear()
    settings.ALLOW_PRIVATE_UPSTREAMS = True
    return server
