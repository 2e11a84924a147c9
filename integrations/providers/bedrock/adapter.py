"""The adapter of Bedrock: Converse for whole answers, ConverseStream for streams."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

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
from integrations.providers.common.adapter import DialectAdapter
from integrations.providers.common.conversation import read_conversation
from integrations.providers.common.endpoints import PerCredentials
from integrations.providers.errors import ProviderError

BEDROCK = Traits(
    provider=PROVIDER,
    title="Amazon Bedrock",
    base_url=BASE_URL,
    owned_by="amazon",
    # Amazon's own models need no agreement with another vendor, and a global profile serves most regions.
    default_model="global.amazon.nova-2-lite-v1:0",
    secret_extra=SECRET_EXTRA,
    optional_extra=(SESSION_TOKEN,),
    options=("region",),
    required_options=("region",),
)


class BedrockAdapter(DialectAdapter):
    def __init__(self) -> None:
        self._access = PerCredentials(Access, secret_extra=(*SECRET_EXTRA, SESSION_TOKEN))
        super().__init__(BEDROCK, self._access)

    def needs(self, request: ChatRequest, credentials: Credentials) -> Needs:
        """Returns the files to fetch, since Converse takes bytes or files in S3 and fetches no address itself."""
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
        native, warnings = build_body(request)
        action = "converse-stream" if request.stream else "converse"
        made = self.signed(request.model, action, encode(native), credentials, stream=request.stream)
        return replace(made, warnings=warnings) if warnings else made

    def signed(
        self, model: str, action: str, body: bytes, credentials: Credentials, *, stream: bool
    ) -> UpstreamRequest:
        """Returns the request of an action on a model, with its authorization."""
        access = self._access.get(credentials)
        url = access.url(model, action)
        return UpstreamRequest("POST", url, access.headers(url, body, stream=stream), body)

    def _parse(self, request: ChatRequest, body: bytes) -> ParsedResponse:
        return parse(request, body)

    def stream(self, request: ChatRequest) -> StreamTranslator:
        return BedrockStream(request, self.redact)

    def _failure(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        return classify(status, headers, body)

    def redact(self, error: ProviderError) -> None:
        super().redact(error)
        hide_account(error)


ADAPTER = BedrockAdapter()
