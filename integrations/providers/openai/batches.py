"""https://platform.openai.com/docs/api-reference/batch"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from integrations.providers.base import Credentials
from integrations.providers.common.batch_results import BatchResult, shortened
from integrations.providers.common.endpoints import Endpoint
from integrations.providers.common.failures import message_in
from integrations.providers.given import NOTHING_GIVEN, Given
from integrations.providers.openai import azure
from integrations.providers.openai.adapter import ADAPTER, OpenAIAdapter
from integrations.providers.openai.compatible import adapters_with
from integrations.providers.openai.operations import usage_in
from integrations.providers.openai.responses_shapes import decode_response, given_in

# https://learn.microsoft.com/azure/foundry/reference/rest/batches-create-batch
_ADAPTERS: Mapping[str, OpenAIAdapter] = {
    "openai": ADAPTER,
    "azure_openai": azure.ADAPTER,
    **adapters_with("batches"),
}
# Those that document both files and batches, at these paths and in this form.
BATCH_PROVIDERS = tuple(_ADAPTERS)
_SUCCESS = 200


class _Response(msgspec.Struct):
    status_code: int = 0
    body: msgspec.Raw = msgspec.Raw(b"null")


class _Line(msgspec.Struct):
    custom_id: str
    response: _Response | None = None
    error: Any = None


_decode_line = msgspec.json.Decoder(_Line).decode
_decode = msgspec.json.decode


def endpoint(provider: str, path: str, credentials: Credentials) -> Endpoint:
    """`path` is "files" or "batches/batch_1/cancel". Azure has both only at its resource, whatever the integration's
    layout."""
    adapter = _ADAPTERS[provider]
    found = adapter.endpoint_of(path, "", credentials)
    if provider != azure.ADAPTER.provider:
        return found
    resource = found.url.partition("?")[0].removesuffix(f"/{path}").partition("/openai/")[0].removesuffix("/models")
    return Endpoint(f"{resource}/openai/v1/{path}", found.headers)


def read_result(line: bytes) -> BatchResult:
    """Reads a line of an output or error file. Raises ValueError for another form."""
    try:
        found = _decode_line(line)
        response = found.response
        body = _decode(response.body) if response is not None else None
        given = _given(response.body, body) if response is not None else NOTHING_GIVEN
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError("not a line of a batch's results") from error
    if response is None or not isinstance(body, dict):
        return _failed(found, 0, found.error, msgspec.json.encode(found.error))
    if response.status_code != _SUCCESS:
        return _failed(found, response.status_code, body.get("error") or found.error, bytes(response.body))
    return BatchResult(
        found.custom_id,
        _SUCCESS,
        bytes(response.body),
        model=_text(body.get("model")),
        finish_reason=_finish_reason(body),
        usage=usage_in(body),
        given=given,
    )


def _given(answer: msgspec.Raw, body: Any) -> tuple[Given, ...]:
    is_response = isinstance(body, dict) and isinstance(body.get("output"), list)
    return given_in(decode_response(bytes(answer))) if is_response else NOTHING_GIVEN


def _failed(line: _Line, status: int, error: Any, answer: bytes) -> BatchResult:
    code = error.get("code") or error.get("type") if isinstance(error, dict) else None
    return BatchResult(
        line.custom_id,
        status,
        answer,
        error_code=_text(code) or "batch_line_failed",
        error_message=shortened(message_in(error)),
    )


def _finish_reason(body: dict[str, Any]) -> str:
    choices = body.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        return _text(choices[0].get("finish_reason"))
    return "stop" if body.get("status") == "completed" else ""


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
