from __future__ import annotations

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from core.openapi.document import API_KEY, KEY_SECURITY, REQUEST_ID
from core.openapi.failures import ProviderFailure
from core.openapi.handwritten import optional_parameter
from gateway.protocol import headers
from gateway.protocol.headers import PREFIX

STREAM = "text/event-stream"
# The gateway also takes the key in the headers of the SDKs of Anthropic and of Google.
SECURITY: list[dict[str, Any]] = [*KEY_SECURITY, {API_KEY: []}]

FAILURES = {
    400: "`invalid_request_error`: the request is wrong, or the provider refused it: as too long for the model "
    "(`context_length_exceeded`), by its content filter (`content_filter`), both with the vendor's own error object in "
    "`provider_error`, or otherwise (`provider_rejected`). "
    "`guardrail_error`: a guardrail refused it.",
    401: "`authentication_error`: no usable key, or not of the project that `X-Project-Id` names.",
    403: "`permission_error`: the key has no scope for the gateway, or its patterns exclude the model "
    "(`model_not_allowed`).",
    404: "`not_found_error`: `prompt_config_not_found`, or no enabled provider serves the model (`model_not_found`).",
    405: "`method_not_allowed`.",
    408: "`request_timeout`: the body did not arrive in time.",
    409: "`conflict_error`: a prompt that this one includes no longer exists (`prompt_include_broken`).",
    413: "`message_too_large`: the body is larger than the gateway takes.",
    422: "`invalid_request_error`: a variable of the prompt is missing, unknown or of the wrong type.",
    429: "`rate_limit_error` or `budget_error`. `Retry-After` says when the limit's window ends.",
    500: "`api_error`: the provider's answer or credentials are unusable, the stored credential cannot be read "
    "(`credential_unreadable`), or the gateway failed.",
    503: "`service_unavailable_error`: no provider answered after retries and failover, the account there has no "
    "quota left (`insufficient_quota`, with `provider_error`), limits cannot be counted (`limits_unavailable`), or the "
    "gateway is draining. `Retry-After` says when a provider may answer again, as far as it said so.",
}

_REQUEST_HEADERS = {
    f"{PREFIX}session-id": "Groups requests into a session, which has a budget and keeps its variant. Without it the "
    "header counts in which a coding agent names its session.",
    f"{PREFIX}user-id": "The end user; keeps its variant too.",
    "Cache-Control": "`max-age=N` asks for an answer that is at most N seconds old, and keeps this one.",
    "x-request-id": "The client's own id of the request, which the record keeps.",
    "traceparent": "W3C trace context: the request's span becomes a child of it.",
}
_PROMPT_HEADERS = {
    f"{PREFIX}prompt-config": "Name of a prompt config, empty for none; `prompt_config` in the body says the same.",
}
_RESPONSE_HEADERS = {
    headers.ECHOED_REQUEST_ID: "The client's own `x-request-id`.",
    headers.PROVIDER: "Who answered.",
    headers.DEPLOYMENT: "Which of several deployments of the provider answered.",
    headers.MODEL_USED: "Which model answered.",
    headers.ORIGINAL_MODEL: "The model asked for, where another answered.",
    headers.FALLBACK_USED: "`true` where another provider or model answered.",
    headers.RETRY_COUNT: "Retries before this answer.",
    headers.CACHE: "`hit`, `miss` or `skip`.",
    headers.WARNING: "What the gateway could not do as asked, and did without.",
    **dict.fromkeys((*headers.RATE_LIMIT_REQUESTS, *headers.RATE_LIMIT_TOKENS), "Of the limit per minute."),
}
_PROMPT_RESPONSE_HEADERS = {
    headers.PROMPT_VERSION: "The version of the managed prompt.",
    headers.VARIANT: "The rollout's arm: `target` or `baseline`.",
    headers.CONTRACT_VIOLATION: "`true` where the answer is not what `response_format` asks for.",
}


class MessagesErrorDetails(TypedDict):
    error_code: str


class MessagesFailure(TypedDict):
    """`type` is one of Anthropic's, `code` and `details.error_code` are the gateway's."""

    type: str
    message: str
    code: str
    details: MessagesErrorDetails
    provider_error: NotRequired[ProviderFailure]


class MessagesErrorBody(TypedDict):
    """An error in the form of Anthropic's API (https://platform.claude.com/docs/en/api/errors)."""

    type: Literal["error"]
    error: MessagesFailure
    request_id: str


class GoogleFailure(TypedDict):
    """`status` is one of Google's; `reason` of the first of the `details` is the gateway's code in capitals."""

    code: int
    message: str
    status: str
    details: list[dict[str, Any]]
    provider_error: NotRequired[ProviderFailure]


class GoogleErrorBody(TypedDict):
    """An error in the form of Google's APIs (https://cloud.google.com/apis/design/errors)."""

    error: GoogleFailure


def request_headers(*, prompts: bool) -> list[dict[str, Any]]:
    named = {**(_PROMPT_HEADERS if prompts else {}), **_REQUEST_HEADERS}
    found = [optional_parameter(name, text) for name, text in named.items()]
    if prompts:
        arms = ["target", "baseline"]
        found.append(optional_parameter(f"{PREFIX}force-variant", "For debugging: the arm of the rollout.", enum=arms))
    return found


def response_headers(*, prompts: bool) -> dict[str, Any]:
    named = {**_RESPONSE_HEADERS, **(_PROMPT_RESPONSE_HEADERS if prompts else {})}
    described = {name.decode(): {"description": text, "schema": {"type": "string"}} for name, text in named.items()}
    return REQUEST_ID | described
