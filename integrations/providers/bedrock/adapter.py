from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import quote

import msgspec
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
from integrations.providers.bedrock.request import build_body
from integrations.providers.bedrock.response import parse
from integrations.providers.bedrock.stream import BedrockStream
from integrations.providers.common.adapter import DialectAdapter
from integrations.providers.common.conversation import read_conversation
from integrations.providers.common.endpoints import USER_AGENT, PerCredentials
from integrations.providers.errors import ProviderError, UnsupportedParameterError, incomplete, no_role

if TYPE_CHECKING:
    from integrations.providers.bedrock.signature import Signer


BASE_URL = "https://bedrock-runtime.{region}.amazonaws.com"
SECRET_EXTRA = ("access_key_id", "secret_access_key")
SESSION_TOKEN = "session_token"  # noqa: S105  # the name of a field

_REGION = re.compile(r"[a-z0-9-]{1,32}")
_EVENT_STREAM = "application/vnd.amazon.eventstream"


class Access:
    """The address and the credentials of one integration. With a Bedrock API key a bearer header is enough; with access
    keys every request is signed. The signed URL is exactly the one that is sent: the model id is percent-encoded once,
    as botocore encodes labels."""

    __slots__ = ("_base_url", "_bearer", "_signer")

    def __init__(self, credentials: Credentials) -> None:
        """Raises ProviderError(CREDENTIALS) if the region or the keys are missing."""
        region = credentials.extra.get("region", "")
        if not _REGION.fullmatch(region):
            raise incomplete("the bedrock integration has no region", PROVIDER)
        self._base_url = (credentials.base_url or _default_url(region)).rstrip("/").replace("{region}", region)
        self._bearer = f"Bearer {credentials.secret}" if credentials.secret else ""
        self._signer = None if self._bearer else _signer(credentials, region)

    def url(self, model: str, action: str) -> str:
        return f"{self._base_url}/model/{_label(model)}/{action}"

    def headers(self, url: str, body: bytes, *, stream: bool) -> Mapping[str, str]:
        headers = {"content-type": "application/json"}
        if self._signer is None:
            headers["authorization"] = self._bearer
        else:
            headers = self._signer.signed(url, body, headers)
        headers["accept"] = _EVENT_STREAM if stream else "application/json"
        headers["user-agent"] = USER_AGENT
        return headers


def _signer(credentials: Credentials, region: str) -> Signer:
    # botocore's signing loads a hundred modules, which a process without such an integration does without.
    from integrations.providers.bedrock.signature import Signer

    extra = credentials.extra
    key_id, secret = extra.get("access_key_id"), extra.get("secret_access_key")
    if not key_id or not secret:
        if credentials.is_ambient:
            raise no_role(PROVIDER)
        raise incomplete("the bedrock integration has neither an API key nor access keys", PROVIDER)
    return Signer(key_id, secret, extra.get(SESSION_TOKEN) or None, region=region)


def _default_url(region: str) -> str:
    return f"{BASE_URL}.cn" if region.startswith("cn-") else BASE_URL


@lru_cache(maxsize=1024)
def _label(model: str) -> str:
    """Raises UnsupportedParameterError for a name that would change the path."""
    if not model.strip(" ."):
        raise UnsupportedParameterError("model", "the name is empty", provider=PROVIDER)
    return quote(model, safe="")


BEDROCK = Traits(
    provider=PROVIDER,
    title="Amazon Bedrock",
    base_url=BASE_URL,
    owned_by="amazon",
    # Amazon's own models need no agreement with another vendor, and a global profile serves most regions.
    default_model="global.amazon.nova-2-lite-v1:0",
    secret_extra=SECRET_EXTRA,
    optional_extra=(SESSION_TOKEN,),
    options=("region", "credentials"),
    required_options=("region",),
)


class BedrockAdapter(DialectAdapter):
    def __init__(self) -> None:
        self._access = PerCredentials(Access, secret_extra=(*SECRET_EXTRA, SESSION_TOKEN))
        super().__init__(BEDROCK, self._access)

    def needs(self, request: ChatRequest, credentials: Credentials) -> Needs:
        """Converse fetches no addresses: it takes bytes, or files in S3."""
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
        made = self.signed(request.model, action, msgspec.json.encode(native), credentials, stream=request.stream)
        return replace(made, warnings=warnings) if warnings else made

    def signed(
        self, model: str, action: str, body: bytes, credentials: Credentials, *, stream: bool
    ) -> UpstreamRequest:
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
