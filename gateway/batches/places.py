"""The integration that serves a call: the one that keeps the file or batch; for a new one, the client's choice."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from core.errors import NotFoundError, ValidationError
from core.keys.patterns import permits
from core.keys.services import KeyRecord
from gateway.errors import ModelNotAllowedError
from gateway.protocol import headers
from gateway.snapshot.project import ProjectSnapshot
from integrations.access.deployments import Deployment
from integrations.providers.base import Credentials


class Place(NamedTuple):
    credentials: Credentials
    deployment: Deployment | None = None

    @property
    def provider(self) -> str:
        return self.credentials.provider

    @property
    def name(self) -> str:
        return "" if self.deployment is None else self.deployment.name

    def client_name(self, model: str) -> str:
        models = {} if self.deployment is None else self.deployment.models
        return next((name for name, own in models.items() if own == model), model)


def place_for_new(
    snapshot: ProjectSnapshot, key: KeyRecord, providers: Collection[str], raw: headers.RawHeaders
) -> Place:
    """Returns the integration for a new file or batch.

    `x-svc-provider` selects it by provider or by name; otherwise it is the first that has the API and that the key may
    use.

    Raises ValidationError (400) if the named integration lacks the API, NotFoundError (404) if all lack it, and
    ModelNotAllowedError (403) if the key may use none that has it.
    """
    wanted = next((value.decode("latin-1") for name, value in raw if name == headers.PROVIDER), "")
    able = [place for place in _places(snapshot) if place.provider in providers]
    if wanted:
        able = [place for place in able if wanted in (place.provider, place.name)]
        if not able:
            raise ValidationError(
                f"{headers.PROVIDER.decode()}: no enabled integration {wanted!r} has this API; the providers that have"
                f" it are {', '.join(providers)}"
            )
    if not able:
        raise NotFoundError(
            f"No enabled provider of this project has this API; the providers that have it are {', '.join(providers)}"
        )
    for place in able:
        if permits((), key.allowed_providers, place.provider, "", place.name):
            return place
    raise ModelNotAllowedError(
        "This API key may use none of the providers that have this API: its allowed providers exclude them"
    )


def place_of(snapshot: ProjectSnapshot, integration_id: int | None) -> Place:
    for place in _places(snapshot):
        if place.credentials.integration_id == integration_id:
            return place
    raise NotFoundError("The integration that keeps it was removed, or is disabled")


def _places(snapshot: ProjectSnapshot) -> Iterator[Place]:
    if snapshot.deployments:
        for deployment in snapshot.deployments.values():
            yield Place(deployment.credentials, deployment)
    else:
        yield from map(Place, snapshot.credentials.values())
