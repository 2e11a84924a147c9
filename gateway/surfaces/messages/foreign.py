"""Other vendors' reasoning and citations in the shape of the Messages API.

A thinking block has one place for what must come back unchanged: its signature (`data` of a redacted block). The
gateway seals the `reasoning_details` entry of the vendor that answered into it. A seal begins with a mark, so that it
is recognised when the client sends it back. Anthropic refuses a seal, and a citation that it did not make, so
`without_foreign` removes both from requests to Anthropic.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

import msgspec

from gateway.surfaces.checks import Json, invalid
from integrations.providers.common.search import find

SEAL = "prompt-gateway.v1."
"""How a seal, and the place of a citation that Anthropic did not make, begins."""

SEARCH_ID = "srvtoolu_gateway_"
"""How the id of a search begins whose blocks the gateway made."""

_encode = msgspec.json.Encoder().encode
_decoder = msgspec.json.Decoder(dict[str, Any])


def sealed(detail: Mapping[str, Any]) -> str:
    return SEAL + base64.urlsafe_b64encode(_encode(detail)).decode()


def opened(seal: str, field: str) -> Json:
    """Empty for reasoning that no vendor signed. Raises ValidationError, which names the `field`, for a seal that the
    gateway did not make."""
    try:
        return _decoder.decode(base64.urlsafe_b64decode(seal[len(SEAL) :]))
    except (binascii.Error, msgspec.DecodeError, ValueError):
        raise invalid(field, "this is not the value that the gateway gave") from None


def is_foreign(value: Any) -> bool:
    return isinstance(value, str) and value.startswith(SEAL)


def is_foreign_thought(block: Mapping[str, Any]) -> bool:
    match block.get("type"):
        case "thinking":
            return not block.get("signature") or is_foreign(block["signature"])
        case "redacted_thinking":
            return is_foreign(block.get("data"))
    return False


def is_foreign_search(block: Mapping[str, Any]) -> bool:
    name = {"server_tool_use": "id", "web_search_tool_result": "tool_use_id"}.get(str(block.get("type")))
    return name is not None and str(block.get(name)).startswith(SEARCH_ID)


def own_citations(block: Json) -> Json:
    citations = block.get("citations")
    if not isinstance(citations, list):
        return block
    own = [one for one in citations if not (isinstance(one, dict) and is_foreign(one.get("encrypted_index")))]
    if len(own) == len(citations):
        return block
    rest = {name: value for name, value in block.items() if name != "citations"}
    return {**rest, "citations": own} if own else rest


def without_foreign(body: bytes) -> bytes:
    """Drops thinking and citations that Anthropic did not make; returns the same `body` if there are none.
    `request.read` must have accepted it."""
    if find(body, SEAL.encode()) < 0 and find(body, SEARCH_ID.encode()) < 0:
        return body
    fields = _decoder.decode(body)
    fields["messages"] = [made for message in fields["messages"] if (made := _own_message(message)) is not None]
    return _encode(fields)


def _own_message(message: Json) -> Json | None:
    content = message["content"]
    if message["role"] != "assistant" or not isinstance(content, list):
        return message
    blocks = [own_citations(block) for block in content if not (is_foreign_thought(block) or is_foreign_search(block))]
    return {**message, "content": blocks} if blocks else None
