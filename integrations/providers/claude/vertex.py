"""https://docs.cloud.google.com/vertex-ai/generative-ai/docs/partner-models/claude/use-claude"""

from __future__ import annotations

from integrations.providers.anthropic.cache_markers import marked
from integrations.providers.anthropic.forwarding import MessagesForwarder, parse_count
from integrations.providers.anthropic.hosts import VERTEX_AI
from integrations.providers.base import NOTHING, ChatRequest, Credentials, Needs, ParsedResponse, UpstreamRequest
from integrations.providers.claude.requests import VERSION_HEADER, VERTEX, at_host, names_files_by_address, version_for
from integrations.providers.vertex.adapter import ADAPTER
from integrations.providers.vertex.partners import partner_of
from integrations.providers.vertex.publishers import publisher_model

_PUBLISHER = "anthropic"
_COUNT = "publishers/anthropic/models/count-tokens:rawPredict"


class VertexForwarder(MessagesForwarder):
    # Vertex AI takes the version in the body alone.
    forward_headers = (VERSION_HEADER,)

    def __init__(self) -> None:
        super().__init__(ADAPTER)

    def serves(self, model: str) -> bool:
        return publisher_model(model).publisher == _PUBLISHER

    def takes(self, body: bytes) -> bool:
        return not names_files_by_address(body)

    def needs(self, request: ChatRequest, credentials: Credentials) -> Needs:
        return Needs(access_token=True) if ADAPTER.takes_access_token(credentials) else NOTHING

    def build_request(self, request: ChatRequest, credentials: Credentials) -> UpstreamRequest:
        model = publisher_model(request.model)
        path = partner_of(model).path(model, request.stream)
        body = at_host(marked(request), version_for(request.headers, VERTEX_AI.version), ("model",))
        return ADAPTER.partner_request(request, credentials, UpstreamRequest("POST", path, {}, body, betas=VERTEX))


class VertexCounter(VertexForwarder):
    """Tokens are counted at a separate address, so the body names the model."""

    # A request to count has no place for parameters of an answer.
    parameters = frozenset()

    def build_request(self, request: ChatRequest, credentials: Credentials) -> UpstreamRequest:
        version, name = version_for(request.headers, VERTEX_AI.version), publisher_model(request.model).model
        body = at_host(request.body, version, ("model",), {"model": name})
        # Vertex AI refuses the feature of its own web search here.
        betas = VERTEX - frozenset(VERTEX_AI.betas.values())
        return ADAPTER.partner_request(request, credentials, UpstreamRequest("POST", _COUNT, {}, body, betas=betas))

    def parse_response(self, request: ChatRequest, body: bytes) -> ParsedResponse:
        return parse_count(request, body, provider=self.provider)

    def as_chat(self, answer: bytes, *, stream: bool) -> bytes:
        return answer


FORWARDERS = {ADAPTER.provider: VertexForwarder()}
COUNTERS = {ADAPTER.provider: VertexCounter()}
