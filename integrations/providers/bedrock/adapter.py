"""The adapter: Converse for whole answers, ConverseStream for streams."""

from __future__ import annotations

from collections.abc import Mapping

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
from integrations.providers.bedrock.failures import classify, hide_account
from integrations.providers.bedrock.media import PROVIDER, is_http
from integrations.providers.bedrock.messages import is_native
from integrations.providers.bedrock.request import build_body, encode
from integrations.providers.bedrock.response import parse
from integrations.providers.bedrock.signing import BASE_URL, SECRET_EXTRA, SESSION_TOKEN, Access
from integrations.providers.bedrock.stream import BedrockStream
from integrations.providers.conversation import read_conversation
from integrations.providers.endpoints import PerCredentials
from integrations.providers.errors import ProviderError
from integrations.providers.failures import redact

BEDROCK = Traits(
    provider=PROVIDER,
    base_url=BASE_URL,
    owned_by="amazon",
    # Amazon's own models need no agreement with another vendor, and a global profile serves most regions.
    default_model="global.amazon.nova-2-lite-v1:0",
    secret_extra=SECRET_EXTRA,
    optional_extra=(SESSION_TOKEN,),
    options=("region",),
    required_options=("region",),
)


class BedrockAdapter:
    """Stateless but for the remembered access."""

    def __init__(self) -> None:
        self.provider = PROVIDER
        self._access = PerCredentials(Access, secret_extra=(*SECRET_EXTRA, SESSION_TOKEN))

    @property
    def traits(self) -> Traits:
        return BEDROCK

    def needs(self, request: ChatRequest, credentials: Credentials) -> Needs:
        """Converse takes bytes, or files in S3; it fetches no address."""
        if b"http" not in request.body:
            return NOTHING
        urls = (
            found.url
            for found in read_conversation(request.fields, native=is_native).attachments()
            if is_http(found.url)
        )
        media = tuple(dict.fromkeys(urls))
        return Needs(media=media) if media else NOTHING

    def build_request(self, request: ChatRequest, credentials: Credentials) -> UpstreamRequest:
        access = self._access.get(credentials)
        native, warnings = build_body(request)
        body = encode(native)
        url = access.url(request.model, stream=request.stream)
        return UpstreamRequest("POST", url, access.headers(url, body, stream=request.stream), body, warnings)

    def parse_response(self, request: ChatRequest, body: bytes) -> ParsedResponse:
        try:
            return parse(request, body)
        except ProviderError as error:
            self._redact(error)
            raise

    def stream(self, request: ChatRequest) -> StreamTranslator:
        return BedrockStream(request, self._redact)

    def classify_failure(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        error = classify(status, headers, body)
        self._redact(error)
        return error

    def _redact(self, error: ProviderError) -> None:
        redact(error, self._access.secrets())
        hide_account(error)


ADAPTER = BedrockAdapter()
