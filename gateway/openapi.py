"""The gateway in the OpenAPI document; the parameters are generated from the types of `gateway.protocol.wire`."""

from __future__ import annotations

from typing import Any

from core.openapi.document import KEY_SECURITY, REQUEST_ID
from core.openapi.failures import ErrorBody
from core.openapi.shapes import reference
from gateway.protocol import headers
from gateway.protocol.completion_shapes import ChatCompletion, ChatCompletionChunk, Model, ModelList
from gateway.protocol.headers import MAX_VARIABLE_CHARACTERS, PREFIX
from gateway.protocol.wire import MAX_FALLBACK_MODELS, MAX_MESSAGES, ChatCompletionRequest

_COMPLETIONS = "/api/gateway/v1/chat/completions"
_MODELS = "/api/gateway/v1/models"
_MODEL = "/api/gateway/v1/models/{model}"
_ANTHROPIC = "With the header `anthropic-version` the answer has the form of Anthropic's API."
_JSON, _STREAM = "application/json", "text/event-stream"

_REQUEST_HEADERS = {
    f"{PREFIX}prompt-config": "Name of a prompt config, empty for none; `prompt_config` in the body says the same.",
    f"{PREFIX}session-id": "Groups requests into a session, which has a budget and keeps its variant.",
    f"{PREFIX}user-id": "The end user; keeps its variant too.",
    "Cache-Control": "`max-age=N` asks for an answer that is at most N seconds old, and keeps this one.",
    "x-request-id": "The client's own id of the request, which the record keeps.",
    "traceparent": "W3C trace context: the request's span becomes a child of it.",
}
_RESPONSE_HEADERS = {
    headers.ECHOED_REQUEST_ID: "The client's own `x-request-id`.",
    headers.PROVIDER: "Who answered.",
    headers.DEPLOYMENT: "Which of several deployments of the provider answered.",
    headers.MODEL_USED: "Which model answered.",
    headers.ORIGINAL_MODEL: "The model asked for, where another answered.",
    headers.FALLBACK_USED: "`true` where another provider or model answered.",
    headers.RETRY_COUNT: "Retries before this answer.",
    headers.PROMPT_VERSION: "The version of the managed prompt.",
    headers.VARIANT: "The rollout's arm: `target` or `baseline`.",
    headers.CACHE: "`hit`, `miss` or `skip`.",
    headers.WARNING: "What the gateway could not do as asked, and did without.",
    headers.CONTRACT_VIOLATION: "`true` where the answer is not what `response_format` asks for.",
    **dict.fromkeys((*headers.RATE_LIMIT_REQUESTS, *headers.RATE_LIMIT_TOKENS), "Of the limit per minute."),
}
_FAILURES = {
    400: "`invalid_request_error`: the request is wrong, or the provider refused it: as too long for the model "
    "(`context_length_exceeded`), by its content filter (`content_filter`), both with the vendor's own error object in "
    "`provider_error`, or otherwise (`provider_rejected`). "
    "`guardrail_error`: a guardrail refused it.",
    401: "`authentication_error`: no usable key, or not of the project that `X-Project-Id` names.",
    403: "`permission_error`: the key has no scope for the gateway.",
    404: "`not_found_error`: `prompt_config_not_found`, or no enabled provider serves the model (`model_not_found`).",
    405: "`method_not_allowed`.",
    408: "`request_timeout`: the body did not arrive in time.",
    422: "`invalid_request_error`: a variable of the prompt is missing, unknown or of the wrong type.",
    429: "`rate_limit_error` or `budget_error`. `Retry-After` says when the limit's window ends.",
    500: "`api_error`: the provider's answer or credentials are unusable, the stored credential cannot be read "
    "(`credential_unreadable`), or the gateway failed.",
    503: "`service_unavailable_error`: no provider answered after retries and failover, the account there has no "
    "quota left (`insufficient_quota`, with `provider_error`), or the gateway is draining. `Retry-After` says when a "
    "provider may answer again, as far as it said so.",
}
_STREAMED = """\
With `stream`, `data: <chat.completion.chunk>` events and `data: [DONE]` at the end. The last chunk before it has an
empty `delta`, a `finish_reason` and `usage`. Lines that begin with `:` keep the connection. A stream that breaks after
output gets one `data: {"error": …}` event, then `[DONE]`."""
_DESCRIPTION = f"""\
OpenAI's dialect. Unknown fields go to providers of the same dialect as they are.

A header `{PREFIX}var-<name>` is a variable of the prompt's template, at most {MAX_VARIABLE_CHARACTERS} characters long.
`-` stands for `_`: `{PREFIX}var-user-name` is `user_name`. `prompt_variables` in the body wins.

{_STREAMED}"""


def add_gateway(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Adds the gateway's paths; a hook of the generator."""
    result["paths"][_COMPLETIONS] = {"post": _completions()}
    result["paths"][_MODELS] = {"get": _models()}
    result["paths"][_MODEL] = {"get": _model()}
    return result


def add_bounds(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Adds the bounds that `gateway.protocol.wire` checks after decoding; a hook that runs after the components are
    made."""
    fields = result["components"]["schemas"]["ChatCompletionRequest"]["properties"]
    fields["messages"] |= {"minItems": 1, "maxItems": MAX_MESSAGES}
    for choice in fields["models"]["anyOf"]:
        if choice.get("type") == "array":
            choice["maxItems"] = MAX_FALLBACK_MODELS
    return result


def _completions() -> dict[str, Any]:
    chunk = reference(ChatCompletionChunk)
    stream = {"schema": {"type": "string", "description": _STREAMED}, "x-event-schema": chunk}
    answer = {_JSON: {"schema": reference(ChatCompletion)}, _STREAM: stream}
    headers = REQUEST_ID | {name.decode(): _header(text) for name, text in _RESPONSE_HEADERS.items()}
    variant = _parameter(
        f"{PREFIX}force-variant", "For debugging: the arm of the rollout.", enum=["target", "baseline"]
    )
    return {
        "operationId": "createChatCompletion",
        "summary": "Create a chat completion",
        "description": _DESCRIPTION,
        "tags": ["gateway"],
        "security": KEY_SECURITY,
        "parameters": [*(_parameter(name, text) for name, text in _REQUEST_HEADERS.items()), variant],
        "requestBody": {"required": True, "content": {_JSON: {"schema": reference(ChatCompletionRequest)}}},
        "responses": {
            "200": {"description": "The answer, whole or streamed.", "headers": headers, "content": answer},
            **_failures(*_FAILURES),
        },
    }


def _models() -> dict[str, Any]:
    found = {
        "description": "OpenAI's list with fields of the gateway's own.",
        "content": {_JSON: {"schema": reference(ModelList)}},
    }
    return {
        "operationId": "listModels",
        "summary": "List the models that can be called",
        "description": f"`prefixes` are the supported prefixes of model names. {_ANTHROPIC}",
        "tags": ["gateway"],
        "security": KEY_SECURITY,
        "parameters": [],
        "responses": {"200": {**found, "headers": REQUEST_ID}, **_failures(401, 403, 405, 503)},
    }


def _model() -> dict[str, Any]:
    name = {"name": "model", "in": "path", "required": True, "description": "Its id, slashes included."}
    found = {"description": "The model.", "content": {_JSON: {"schema": reference(Model)}}}
    return {
        **_models(),
        "operationId": "getModel",
        "summary": "Describe a model that can be called",
        "description": _ANTHROPIC,
        "parameters": [{**name, "schema": {"type": "string"}}],
        "responses": {"200": {**found, "headers": REQUEST_ID}, **_failures(401, 403, 404, 405, 503)},
    }


def _failures(*statuses: int) -> dict[str, Any]:
    content = {_JSON: {"schema": reference(ErrorBody)}}
    return {
        str(status): {"description": _FAILURES[status], "headers": REQUEST_ID, "content": content}
        for status in statuses
    }


def _parameter(name: str, description: str, **schema: Any) -> dict[str, Any]:
    return {
        "name": name,
        "in": "header",
        "required": False,
        "description": description,
        "schema": {"type": "string", **schema},
    }


def _header(description: str) -> dict[str, Any]:
    return {"description": description, "schema": {"type": "string"}}
