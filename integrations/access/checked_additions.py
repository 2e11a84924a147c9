"""Checks the parameters and headers that an integration may add to every request. Errors name both field and entry."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from core.errors import ValidationError
from integrations.providers.additions import MAX_HEADER_VALUE

MAX_PARAMETERS = 50
MAX_PARAMETER_BYTES = 16 * 1024
MAX_HEADERS = 20

_PARAMETER = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}\Z")
# The gateway itself reads certain fields of a request to route, to limit and to guard it, so no integration may set
# them.
_REQUEST_PARAMETERS = frozenset(
    {
        "model", "models", "messages", "stream", "stream_options", "provider", "prompt_config", "prompt_variables", "n",
        "tools", "functions", "response_format",
    }
)  # fmt: skip
_HEADER = re.compile(r"[!#$%&'*+\-.^_`|~0-9a-z]{1,100}\Z")
_VALUE = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?\Z")
# These headers frame the message or belong to one connection (RFC 9110, 7.6.1).
FRAMING_HEADERS = frozenset(
    {
        "host", "content-length", "content-type", "content-encoding", "transfer-encoding", "accept-encoding",
        "connection", "proxy-connection", "keep-alive", "upgrade", "te", "trailer", "expect",
    }
)  # fmt: skip
# Credentials have fields of their own.
_RESERVED_HEADERS = FRAMING_HEADERS | {
    "authorization", "proxy-authorization", "proxy-authenticate", "www-authenticate", "x-api-key", "api-key",
    "x-goog-api-key", "cookie", "set-cookie",
}  # fmt: skip
# AWS's headers are signed and must not be set here; the gateway's own mean nothing to a provider.
_RESERVED_PREFIXES = ("x-amz-", "x-svc-")
_NOT_FORWARDED = frozenset({"x-project-id", "forwarded", "x-forwarded-for", "x-real-ip"})


class _Known(msgspec.Struct):
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    max_tokens: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] | None = None
    max_completion_tokens: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] | None = None
    frequency_penalty: Annotated[float, msgspec.Meta(ge=-2, le=2)] | None = None
    presence_penalty: Annotated[float, msgspec.Meta(ge=-2, le=2)] | None = None
    stop: str | list[str] | None = None
    seed: int | None = None
    user: str | None = None
    reasoning_effort: Annotated[str, msgspec.Meta(min_length=1, max_length=64)] | None = None
    thinking: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    store: bool | None = None


def checked_parameters(field: str, given: Any, *, may_remove: bool) -> dict[str, Any]:
    """With `may_remove` a value may be null, which removes the parameter from requests. Raises ValidationError."""
    if not isinstance(given, Mapping):
        raise _invalid(field, "", "must be an object of parameters")
    if len(given) > MAX_PARAMETERS:
        raise _invalid(field, "", f"must have at most {MAX_PARAMETERS} entries")
    for name, value in given.items():
        _check_parameter(field, name, value, may_remove=may_remove)
    try:
        # The parameters are written as JSON here as the database and requests will write them, since a lone surrogate
        # or a number that JSON cannot express must be refused now.
        text = json.dumps(given, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError):
        raise _invalid(field, "", "holds a number or a text that cannot be sent") from None
    if len(text) > MAX_PARAMETER_BYTES:
        raise _invalid(field, "", f"must be at most {MAX_PARAMETER_BYTES} bytes of JSON")
    if b"\\u0000" in text:
        raise _invalid(field, "", "holds the character NUL, which no database keeps")
    return dict(given)


def checked_headers(
    given: Any, field: str = "extra_headers", reserved: frozenset[str] = _RESERVED_HEADERS
) -> dict[str, str]:
    """Returns names in lower case. Raises ValidationError, whose text names the field and never a value."""
    if not isinstance(given, Mapping):
        raise _invalid(field, "", "must be an object of names and values")
    if len(given) > MAX_HEADERS:
        raise _invalid(field, "", f"must have at most {MAX_HEADERS} entries")
    headers: dict[str, str] = {}
    for name, value in given.items():
        key = _checked_name(field, name, reserved)
        if key in headers:
            raise _invalid(field, key, "is there twice")
        if not isinstance(value, str) or len(value) > MAX_HEADER_VALUE or not _VALUE.match(value):
            raise _invalid(field, key, f"must be at most {MAX_HEADER_VALUE} visible ASCII characters")
        headers[key] = value
    return headers


def checked_forwarded(given: Any) -> list[str]:
    """Returns the client headers to pass on, in lower case and without duplicates. Raises ValidationError."""
    if not isinstance(given, list):
        raise _invalid("forward_headers", "", "must be a list of header names")
    if len(given) > MAX_HEADERS:
        raise _invalid("forward_headers", "", f"must have at most {MAX_HEADERS} entries")
    names = [_checked_name("forward_headers", name, _RESERVED_HEADERS) for name in given]
    for name in names:
        if name in _NOT_FORWARDED:
            raise _invalid("forward_headers", name, "says something about the client that no provider needs")
    return list(dict.fromkeys(names))


def _check_parameter(field: str, name: Any, value: Any, *, may_remove: bool) -> None:
    if not isinstance(name, str) or not _PARAMETER.match(name):
        raise _invalid(field, "", "has a name that is none of a parameter: letters, digits, _, . and - , at most 64")
    if name in _REQUEST_PARAMETERS:
        raise _invalid(field, name, "belongs to the request: the gateway itself reads it")
    if value is None:
        if may_remove:
            return
        raise _invalid(field, name, "null is no default")
    try:
        msgspec.convert({name: value}, _Known)
    except msgspec.ValidationError as error:
        raise _invalid(field, name, str(error).partition(" - at ")[0]) from None


def _checked_name(field: str, name: Any, reserved: frozenset[str]) -> str:
    key = name.strip().lower() if isinstance(name, str) else ""
    if not _HEADER.match(key):
        raise _invalid(field, "", "has a name that is none of a header")
    if key in reserved or key.startswith(_RESERVED_PREFIXES):
        raise _invalid(field, key, "is set by the gateway and nobody else")
    return key


def _invalid(field: str, entry: str, problem: str) -> ValidationError:
    place = f"{field}.{entry}" if entry else field
    return ValidationError.of_field(place, problem)
