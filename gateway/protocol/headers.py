"""Every header that the gateway reads or writes; no other module defines their prefix."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from operator import itemgetter

import msgspec

from gateway.protocol.client_ids import SESSION_HEADERS, session_of_agent

PREFIX = "x-svc-"
MAX_VARIABLE_CHARACTERS = 255

REQUEST_ID = b"x-request-id"
ECHOED_REQUEST_ID = b"x-client-request-id"
PROVIDER = f"{PREFIX}provider".encode()
DEPLOYMENT = f"{PREFIX}deployment".encode()
MODEL_USED = f"{PREFIX}model-used".encode()
ORIGINAL_MODEL = f"{PREFIX}original-model".encode()
FALLBACK_USED = f"{PREFIX}fallback-used".encode()
RETRY_COUNT = f"{PREFIX}retry-count".encode()
PROMPT_VERSION = f"{PREFIX}prompt-version".encode()
VARIANT = f"{PREFIX}variant".encode()
CACHE = f"{PREFIX}cache".encode()
WARNING = f"{PREFIX}warning".encode()
RATE_LIMIT_REQUESTS, RATE_LIMIT_TOKENS = (
    tuple(f"x-ratelimit-{what}-{kind}".encode() for what in ("limit", "remaining", "reset"))
    for kind in ("requests", "tokens")
)
CONTRACT_VIOLATION = b"x-output-contract-violation"

_PROMPT_CONFIG = f"{PREFIX}prompt-config".encode()
_VARIABLE_PREFIX = f"{PREFIX}var-".encode()
_SESSION_ID = f"{PREFIX}session-id".encode()
_USER_ID = f"{PREFIX}user-id".encode()
_FORCE_VARIANT = f"{PREFIX}force-variant".encode()

# https://www.w3.org/TR/trace-context/#traceparent-header: later versions of the header may add fields behind the flags.
_TRACEPARENT = re.compile(
    r"(?:00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}"
    r"|(?!00|ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}(?:-.*)?)\Z"
)

RawHeaders = Sequence[tuple[bytes, bytes]]
ClientHeaders = tuple[tuple[str, str], ...]


class RequestHeaders(msgspec.Struct):
    """The request headers that mean something to the gateway, decoded; absent ones are empty.

    `prompt_config` is None when absent: an empty value declines every managed prompt. `agent_session` is that of a
    coding agent, which counts where the client names no `session_id`."""

    authorization: bytes = b""
    api_key: str = ""
    project_id: str = ""
    content_encoding: str = ""
    cache_control: str = ""
    prompt_config: str | None = None
    session_id: str = ""
    user_id: str = ""
    force_variant: str = ""
    traceparent: str = ""
    client_request_id: str = ""
    agent_session: str = ""
    variables: dict[str, str] = msgspec.field(default_factory=dict)
    raw: RawHeaders = ()  # `raw` holds all headers, because an integration may pass some on.


def _text(value: bytes) -> str:
    # HTTP has no charset for header values: most clients send UTF-8, and browsers, Node's `fetch` and Python's
    # `http.client` Latin-1, the charset of RFC 9110, section 5.5. A text in Latin-1 is hardly ever valid UTF-8.
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text = value.decode("latin-1")
    return text.replace("\x00", "")


_FIELDS = {
    b"authorization": "authorization",
    b"x-api-key": "api_key",
    b"x-goog-api-key": "api_key",
    b"cache-control": "cache_control",
    b"x-project-id": "project_id",
    b"traceparent": "traceparent",
    b"content-encoding": "content_encoding",
    _PROMPT_CONFIG: "prompt_config",
    _SESSION_ID: "session_id",
    _USER_ID: "user_id",
    _FORCE_VARIANT: "force_variant",
    REQUEST_ID: "client_request_id",
    **dict.fromkeys(SESSION_HEADERS, "agent_session"),
}


def read_headers(raw: RawHeaders) -> RequestHeaders:
    """Returns the known headers of an ASGI scope. `x-svc-var-user-name` becomes the variable `user_name`."""
    headers = RequestHeaders(raw=raw)
    for place, field in _meanings(tuple(map(_name_of, raw))):
        name, value = raw[place]
        if not field:
            headers.variables[_variable(name)] = _text(value)
        elif field == "authorization":
            headers.authorization = value
        elif field == "cache_control" and headers.cache_control:
            # A proxy may add a second line of the header.
            headers.cache_control = f"{headers.cache_control},{_text(value)}"
        else:
            setattr(headers, field, _text(value))
    if headers.agent_session and not headers.session_id:
        headers.session_id = session_of_agent(raw)
    return headers


@lru_cache(maxsize=1024)
def _meanings(names: tuple[bytes, ...]) -> tuple[tuple[int, str], ...]:
    return tuple(
        (place, _FIELDS.get(name, ""))
        for place, name in enumerate(names)
        if name in _FIELDS or name.startswith(_VARIABLE_PREFIX)
    )


def client_headers(raw: RawHeaders, names: tuple[str, ...]) -> ClientHeaders:
    wanted = _encoded(names)
    if wanted.isdisjoint(map(_name_of, raw)):
        return ()
    found = [header for header in raw if header[0] in wanted]
    texts = [(name.decode("ascii"), value.decode("ascii").strip()) for name, value in found if value.isascii()]
    return tuple((name, text) for name, text in texts if text.isprintable())


_name_of = itemgetter(0)


@lru_cache(maxsize=64)
def _encoded(names: tuple[str, ...]) -> frozenset[bytes]:
    return frozenset(name.encode("ascii") for name in names)


def trace_parent(header: str) -> tuple[str, str]:
    found = _TRACEPARENT.match(header.strip())
    if found is None:
        return "", ""
    return found[1] or found[3], found[2] or found[4]


@lru_cache(maxsize=4096)
def _variable(name: bytes) -> str:
    return name[len(_VARIABLE_PREFIX) :].decode("ascii", "replace").replace("-", "_")


@lru_cache(maxsize=4096)
def header_value(text: str) -> bytes:
    return "".join(c if " " <= c != "\x7f" else " " for c in text).encode("latin-1", "replace")
