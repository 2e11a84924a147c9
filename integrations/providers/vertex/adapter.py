from __future__ import annotations

from msgspec.structs import replace

from integrations.providers.base import (
    ChatRequest,
    Credentials,
    Needs,
    ParsedResponse,
    StreamTranslator,
    UpstreamRequest,
)
from integrations.providers.errors import FailureKind, ProviderError
from integrations.providers.google import VERTEX, GoogleAdapter
from integrations.providers.google.endpoints import is_service_account, vertex_path, vertex_place
from integrations.providers.vertex.partners import Partner, partner_of
from integrations.providers.vertex.publishers import GOOGLE, PublisherModel, publisher_model


class VertexAdapter(GoogleAdapter):
    """Failures have Google's form for every publisher's model: Google's front end answers for all of them."""

    def __init__(self) -> None:
        super().__init__(VERTEX.traits, place=vertex_place, path=vertex_path, vertex=True)

    def needs(self, request: ChatRequest, credentials: Credentials) -> Needs:
        model = publisher_model(request.model)
        if model.publisher == GOOGLE:
            return super().needs(request, credentials)
        partner = partner_of(model)
        files = partner.adapter.needs(_for_partner(request, partner, model), credentials).media
        return Needs(media=files, access_token=is_service_account(credentials.secret))

    def build_request(self, request: ChatRequest, credentials: Credentials) -> UpstreamRequest:
        model = publisher_model(request.model)
        if model.publisher == GOOGLE:
            return super().build_request(request, credentials)
        partner = partner_of(model)
        built = partner.adapter.build_request(_for_partner(request, partner, model), credentials)
        own = {name: built.headers[name] for name in partner.headers if name in built.headers}
        path = partner.path(model, request.stream)
        return self.partner_request(request, credentials, replace(built, url=path, headers=own))

    def takes_access_token(self, credentials: Credentials) -> bool:
        return is_service_account(credentials.secret)

    def partner_request(
        self, request: ChatRequest, credentials: Credentials, built: UpstreamRequest
    ) -> UpstreamRequest:
        """Adds the address and the authorization to a request whose `url` is the path behind the location. Raises
        ProviderError(NOT_FOUND) if the integration has no project."""
        place = self._places.get(credentials)
        if not place.project:
            raise ProviderError(
                f"the {self.provider} integration has an API key, with which only Google's own models can be called",
                kind=FailureKind.NOT_FOUND,
                provider=self.provider,
            )
        headers = {**place.headers, **built.headers}
        if place.needs_token:
            headers["authorization"] = f"Bearer {request.access_token}"
        return replace(built, url=f"{place.root}/{built.url}", headers=headers)

    def _parse(self, request: ChatRequest, body: bytes) -> ParsedResponse:
        model = publisher_model(request.model)
        if model.publisher == GOOGLE:
            return super()._parse(request, body)
        partner = partner_of(model)
        return partner.adapter.parse_response(_for_partner(request, partner, model), body)

    def stream(self, request: ChatRequest) -> StreamTranslator:
        model = publisher_model(request.model)
        if model.publisher == GOOGLE:
            return super().stream(request)
        partner = partner_of(model)
        return partner.adapter.stream(_for_partner(request, partner, model))


def _for_partner(request: ChatRequest, partner: Partner, model: PublisherModel) -> ChatRequest:
    return replace(request, model=partner.named(model))


ADAPTER = VertexAdapter()
