"""https://platform.openai.com/docs/api-reference/chat

A look-alike is a `Dialect` row.
"""

from __future__ import annotations

from collections.abc import Mapping

from integrations.providers.base import (
    NOTHING,
    ChatRequest,
    Credentials,
    Needs,
    ParsedResponse,
    StreamTranslator,
    UpstreamRequest,
)
from integrations.providers.common.adapter import DialectAdapter
from integrations.providers.common.endpoints import USER_AGENT, Endpoint, PerCredentials
from integrations.providers.common.search import find
from integrations.providers.errors import ProviderError
from integrations.providers.openai.dialect import OPENAI_PARAMETERS, Dialect, Documents, History, Thinking
from integrations.providers.openai.request import BodyBuilder
from integrations.providers.openai.response import conforming, parse_response
from integrations.providers.openai.stream import OpenAIStream

# The families of reasoning models and the parameters that they refuse are listed at
# https://platform.openai.com/docs/guides/reasoning and https://platform.openai.com/docs/guides/latest-model (parameter
# compatibility).
_REASONING_MODELS = ("o1", "o3", "o4", "gpt-5", "gpt-6", "gpt-oss")
_OPTIONALLY_REASONING_MODELS = ("gpt-5.", "gpt-6")
# Each generation of reasoning models takes its own levels beside `none`.
_EFFORTS = (
    ("gpt-6", ("low", "medium", "high", "xhigh", "max")),
    ("gpt-5.1", ("low", "medium", "high")),
    ("gpt-5.", ("low", "medium", "high", "xhigh")),
    ("gpt-5", ("minimal", "low", "medium", "high")),
)
_REFUSED_BY_REASONING_MODELS = (
    "temperature",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "logprobs",
    "top_logprobs",
    "logit_bias",
    "stop",
)
# Chat completions refuse tools with reasoning for these models: "use /v1/responses or set reasoning_effort to 'none'"
# (https://github.com/openai/openai-openapi/issues/541, for gpt-5.4). From gpt-5.6 on they refuse tools for a request
# without a level too (https://github.com/BerriAI/litellm/pull/34569). They are the models that take `none`.
RESPONSES_MODELS = _OPTIONALLY_REASONING_MODELS

OPENAI = Dialect(
    provider="openai",
    title="OpenAI",
    base_url="https://api.openai.com/v1",
    owned_by="openai",
    default_model="gpt-4o-mini",
    forward_headers=("openai-beta",),
    functions="always",
    options=("responses_models",),
    documents=Documents.FILE_DATA,
    thinking=Thinking.EFFORT,
    effort_models=_REASONING_MODELS,
    optional_models=_OPTIONALLY_REASONING_MODELS,
    efforts=_EFFORTS,
    history=History.DROP,
    developer_role=True,
    system_anywhere=True,
    cache_breakpoint=True,
    parameters=OPENAI_PARAMETERS,
    reasoning_models=_REASONING_MODELS,
    sampling_refused=_REFUSED_BY_REASONING_MODELS,
    responses_models=RESPONSES_MODELS,
)

_CHAT = "/chat/completions"
# The words of the refusal of RESPONSES_MODELS, whose advice is no help to a client of chat completions.
_BY_RESPONSES = ("/v1/responses", "reasoning_effort")
RESPONSES_SETTING = (
    "With the setting openai_responses_for_tools of the project, the gateway sends such requests by /v1/responses."
)


class OpenAIAdapter(DialectAdapter):
    def __init__(self, dialect: Dialect = OPENAI) -> None:
        self._endpoints = PerCredentials(self._endpoint)
        super().__init__(dialect, self._endpoints)
        self.dialect = dialect
        self._body = BodyBuilder(dialect)
        self._marks_of_fetched = self._body.marks_of_fetched
        self.marks = self._body.marks

    def needs(self, request: ChatRequest, credentials: Credentials) -> Needs:
        for mark in self._marks_of_fetched:
            if find(request.body, mark) >= 0:
                return self._body.needs(request)
        return NOTHING

    def endpoint(self, credentials: Credentials) -> Endpoint:
        return self._endpoints.get(credentials)

    def build_request(self, request: ChatRequest, credentials: Credentials) -> UpstreamRequest:
        endpoint = self._endpoints.get(credentials)
        body, warnings = self._body.build(request)
        return UpstreamRequest("POST", endpoint.url, endpoint.headers, body, warnings)

    def forwarded(self, request: ChatRequest) -> bytes | None:
        for mark in self._marks_of_fetched:
            if find(request.body, mark) >= 0:
                return None
        body, warnings = self._body.build(request)
        return None if warnings else body

    def _failure(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        error = super()._failure(status, headers, body)
        if status == 400 and self.dialect.responses_models and all(words in error.message for words in _BY_RESPONSES):
            error.message += f" {RESPONSES_SETTING}"
        return error

    # The function itself: a method would be one more call.
    conforming = staticmethod(conforming)

    def _parse(self, request: ChatRequest, body: bytes) -> ParsedResponse:
        return parse_response(request, body, provider=self.provider)

    def stream(self, request: ChatRequest) -> StreamTranslator:
        return OpenAIStream(model=request.model, provider=self.provider, redact=self.redact, seed=request.body)

    def endpoint_of(self, operation: str, model: str, credentials: Credentials) -> Endpoint:
        endpoint = self._endpoints.get(credentials)
        root, _, query = endpoint.url.rpartition(_CHAT)
        return Endpoint(f"{root}/{operation}{query}", endpoint.headers)

    def _endpoint(self, credentials: Credentials) -> Endpoint:
        base_url = (credentials.base_url or self.dialect.base_url).rstrip("/")
        headers = {"content-type": "application/json", "user-agent": USER_AGENT}
        if credentials.secret:
            headers["authorization"] = f"Bearer {credentials.secret}"
        return Endpoint(f"{base_url}{_CHAT}", headers)


ADAPTER = OpenAIAdapter()
