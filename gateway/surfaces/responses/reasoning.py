"""Reasoning that must come back unchanged, as the `encrypted_content` of reasoning items.

A chat completion carries every vendor's signed and encrypted blocks in `reasoning_details`. The Responses API has one
opaque text for them, which clients send back with the item; only this gateway and the block's vendor read it.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

import msgspec

from gateway.surfaces.responses import compaction
from integrations.providers.common.search import find

_MARK = "reasoning_details."
_decode_body = msgspec.json.Decoder(dict[str, Any]).decode
_decode = msgspec.json.Decoder(list[dict[str, Any]]).decode
_encode = msgspec.json.Encoder().encode


def encrypted_content(details: list[dict[str, Any]]) -> str:
    return _MARK + urlsafe_b64encode(_encode(details)).decode()


def reasoning_details(content: object) -> list[dict[str, Any]]:
    """Empty for a text of another origin, which means nothing to the providers of chat completions."""
    if not isinstance(content, str) or not content.startswith(_MARK):
        return []
    try:
        return _decode(urlsafe_b64decode(content[len(_MARK) :]))
    except (ValueError, msgspec.DecodeError):
        return []


def without_foreign(body: bytes) -> bytes:
    """Drops reasoning items that this surface made, which the vendor would refuse, and replaces its compactions by
    messages. Returns the same bytes if there are none."""
    if find(body, _MARK.encode()) < 0 and find(body, compaction.SEAL.encode()) < 0:
        return body
    fields = _decode_body(body)
    items = fields.get("input")
    if isinstance(items, list):
        fields["input"] = [_readable(item) for item in items if not _is_foreign(item)]
    return _encode(fields)


def _readable(item: Any) -> Any:
    summary = compaction.summary_of(item) if isinstance(item, dict) else None
    return item if summary is None else compaction.opened(summary)


def _is_foreign(item: object) -> bool:
    content = item.get("encrypted_content") if isinstance(item, dict) else None
    return isinstance(content, str) and content.startswith(_MARK)
