"""Other vendors' reasoning in the shape of the Gemini API.

A part has one place for what must come back unchanged: its `thoughtSignature`, which is base64. The gateway seals the
`reasoning_details` of the vendor that answered into it. Seals stand with the first call of the answer, or after its
text, since clients drop thoughts from the conversation that they send again. Google refuses a seal, so
`without_foreign` removes them from requests to Google.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from gateway.surfaces.checks import Json, invalid
from gateway.surfaces.gemini.fields import camelled, repeated
from integrations.providers.common.search import find
from integrations.providers.google.messages import UNSIGNED

_MARK = b"prompt-gateway.v1."
# The mark has a multiple of three bytes, so that every seal begins with these characters.
_SEAL = base64.b64encode(_MARK).decode()
_URL_ALPHABET = str.maketrans("-_", "+/")

_decode = msgspec.json.Decoder(list[dict[str, Any]]).decode
_decode_body = msgspec.json.Decoder(dict[str, Any]).decode
_encode = msgspec.json.Encoder().encode


def sealed(details: Sequence[Mapping[str, Any]]) -> str:
    """Seals entries of `reasoning_details`. An empty seal says that no vendor signed the part."""
    return base64.b64encode(_MARK + _encode(details)).decode()


def opened(seal: str, field: str) -> list[Json]:
    """Raises ValidationError, which names the `field`, for a seal that the gateway did not make."""
    try:
        text = seal.translate(_URL_ALPHABET).rstrip("=")
        data = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
        return _decode(data[len(_MARK) :])
    except (binascii.Error, msgspec.DecodeError, ValueError):
        raise invalid(field, "this is not the value that the gateway gave") from None


def is_foreign(signature: Any) -> bool:
    return isinstance(signature, str) and signature.startswith(_SEAL)


def without_foreign(body: bytes) -> bytes:
    """Drops what other vendors signed; returns the same `body` if there is nothing. `request.read` must have accepted
    it."""
    if find(body, _SEAL.encode()) < 0:
        return body
    fields = camelled(_decode_body(body))
    contents = [camelled(content) for content in repeated(fields, "contents")]
    fields["contents"] = [made for content in contents if (made := _own_content(content)) is not None]
    return _encode(fields)


def _own_content(content: Json) -> Json | None:
    parts = [camelled(part) for part in repeated(content, "parts")]
    own = [made for part in parts if (made := _own_part(part)) is not None]
    return {**content, "parts": own} if own or not parts else None


def _own_part(part: Json) -> Json | None:
    if not is_foreign(part.get("thoughtSignature")):
        return part
    if "functionCall" in part:
        # Google takes this in place of the signature of a call that another vendor's model made.
        return {**part, "thoughtSignature": UNSIGNED}
    if part.get("thought") or part.get("text") == "":
        return None
    return {name: value for name, value in part.items() if name != "thoughtSignature"}
