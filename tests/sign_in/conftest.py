from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytest_django import Settings

from core.sign_in import openid, throttle
from core.sign_in.providers import Provider
from tests.sign_in.fake import CLIENT_ID, CLIENT_SECRET, FakeProvider, serving


@pytest.fixture
def fake() -> Iterator[FakeProvider]:
    with serving(FakeProvider()) as provider:
        yield provider


@pytest.fixture
def company(fake: FakeProvider, settings: Settings) -> Provider:
    """A test replaces it in the settings to change it."""
    provider = Provider("company", "Company", fake.address, CLIENT_ID, CLIENT_SECRET)
    settings.OIDC_PROVIDERS = (provider,)
    openid._clients.clear()
    throttle._begun.clear()
    return provider
