from __future__ import annotations

from collections.abc import Callable, Mapping

from integrations.providers.base import (
    NOTHING,
    ChatRequest,
    Credentials,
    Needs,
    ParsedResponse,
    StreamTranslator,
    Traits,
    UpstreamRequest,
)
from integrations.providers.common.adapter import DialectAdapter
from integrations.providers.common.endpoints import Endpoint, PerCredentials
from integrations.providers.errors import ProviderError
from integrations.providers.google.endpoints import (
    GEMINI_URL,
    VERTEX_URL,
    Place,
    gemini_path,
    gemini_place,
    is_service_account,
    vertex_path,
    vertex_place,
)
from integrations.providers.google.failures import google_failure
from integrations.providers.google.request import build_body, files_to_fetch
from integrations.providers.google.response import parse_response
from integrations.providers.google.stream import GoogleStream

WHOLE = ":generateContent"
# Without `alt=sse` the stream is one JSON array.
STREAMED = ":streamGenerateContent?alt=sse"


class GoogleAdapter(DialectAdapter):
    def __init__(
        self, traits: Traits, *, place: Callable[[Credentials], Place], path: Callable[[str], str], vertex: bool
    ) -> None:
        self._places = PerCredentials(place)
        super().__init__(traits, self._places)
        self._path = path
        self._vertex = vertex

    def needs(self, request: ChatRequest, credentials: Credentials) -> Needs:
        files = files_to_fetch(request, vertex=self._vertex)
        token = self._vertex and is_service_account(credentials.secret)
        return Needs(media=files, access_token=token) if files or token else NOTHING

    def build_request(self, request: ChatRequest, credentials: Credentials) -> UpstreamRequest:
        endpoint = self.endpoint_of(STREAMED if request.stream else WHOLE, request, credentials)
        body, warnings = build_body(request, provider=self.provider, vertex=self._vertex)
        return UpstreamRequest("POST", endpoint.url, endpoint.headers, body, warnings)

    def endpoint_of(self, method: str, request: ChatRequest, credentials: Credentials) -> Endpoint:
        place = self._places.get(credentials)
        headers = place.headers
        if place.needs_token:
            headers = {**headers, "authorization": f"Bearer {request.access_token}"}
        return Endpoint(f"{place.root}/{self._path(request.model)}{method}", headers)

    def _parse(self, request: ChatRequest, body: bytes) -> ParsedResponse:
        return parse_response(request, body, provider=self.provider)

    def stream(self, request: ChatRequest) -> StreamTranslator:
        return GoogleStream(model=request.model, provider=self.provider, redact=self.redact)

    def _failure(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        return google_failure(provider=self.provider, status=status, headers=headers, body=body)


GEMINI = GoogleAdapter(
    Traits(
        provider="google",
        title="Google Gemini",
        base_url=GEMINI_URL,
        owned_by="google",
        default_model="gemini-2.5-flash",
    ),
    place=gemini_place,
    path=gemini_path,
    vertex=False,
)
VERTEX = GoogleAdapter(
    Traits(
        provider="google_vertex",
        title="Google Vertex AI",
        base_url=VERTEX_URL,
        owned_by="google",
        default_model="gemini-2.5-flash",
        options=("project", "location", "credentials"),
        required_options=("project",),
        service_account=True,
        # The header and the largest output are for Claude; Gemini ignores them.
        forward_headers=("anthropic-beta",),
        needs_max_output=True,
        claude_blocks=("claude",),
    ),
    place=vertex_place,
    path=vertex_path,
    vertex=True,
)
