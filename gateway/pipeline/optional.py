"""Tools that a client of another protocol offers as optional: a provider that lacks one answers without it."""

from __future__ import annotations

import msgspec

from gateway.protocol.wire import LazyFields
from integrations.providers.base import ChatRequest
from integrations.providers.errors import UnsupportedParameterError

_SEARCH = "web_search_options"
_decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode


def without_search(request: ChatRequest, refused: UnsupportedParameterError) -> ChatRequest:
    """Drops the web search that the provider `refused`: coding agents offer it with each request, beside their own
    tools.

    A chat completion asks for its search, so any other refusal is raised.
    """
    if not request.is_translated or refused.parameter != _SEARCH:
        raise refused
    fields = _decode(request.body)
    del fields[_SEARCH]
    body = _encode(fields)
    problem = str(refused).removeprefix(f"{_SEARCH}: ")
    warning = f"web_search: dropped, {problem}"
    return msgspec.structs.replace(request, body=body, fields=LazyFields(body), warnings=(*request.warnings, warning))
