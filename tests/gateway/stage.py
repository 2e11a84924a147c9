"""A project in which every provider is enabled and played by its fake, so that the answers of providers can be
compared."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from integrations.providers.base import Credentials
from integrations.registry import default_model, traits_of
from tests.fakes.dialects.registry import FAKES, distinct_providers
from tests.fakes.dialects.server import DialectServer, answer_with, read_request
from tests.fakes.dialects.story import FakeDialect, ReadRequest, Story
from tests.fakes.scripted import Script, Step
from tests.gateway.service import Gateway, GatewayService


@dataclass(frozen=True)
class Stage:
    gateway: Gateway
    server: DialectServer

    def play(self, provider: str, *steps: Step | Story) -> Script:
        """Sets the stories that the provider answers with next, whole or streamed as requested."""
        fake = FAKES[provider]
        return self.server.play(
            provider, *(answer_with(fake, step) if isinstance(step, Story) else step for step in steps)
        )

    def requests_of(self, provider: str) -> list[ReadRequest]:
        """Returns the requests that the provider received since its steps were set. Raises AssertionError for one that
        its vendor would refuse."""
        return [read_request(FAKES[provider], received) for received in self.server.scripts[provider].received]


def model_of(provider: str) -> str:
    """Returns the model name that a client uses; `upstream_model_of` returns the one that the provider receives."""
    return f"{provider}/{upstream_model_of(provider)}"


def upstream_model_of(provider: str) -> str:
    return default_model(provider) or "some-model"


@contextmanager
def staged(service: GatewayService) -> Iterator[Stage]:
    with DialectServer() as server:
        integrations = [
            # The requests of the tests name files and containers of their own.
            {**integration_of(FAKES[provider], server.base_url(provider)), "own_account": True}
            for provider in distinct_providers()
            if provider in FAKES
        ]
        yield Stage(service.new_project(integrations=integrations), server)


def integration_of(fake: FakeDialect, base_url: str) -> dict[str, Any]:
    return credentials_row(fake.credentials(base_url))


def credentials_row(credentials: Credentials) -> dict[str, Any]:
    """Returns the integration row that `seed.py` stores."""
    secret = set(traits_of(credentials.provider).secret_extra)
    return {
        "provider": credentials.provider,
        "base_url": credentials.base_url,
        "api_key": credentials.secret,
        "options": {name: value for name, value in credentials.extra.items() if name not in secret},
        "secret_extra": {name: value for name, value in credentials.extra.items() if name in secret},
    }
