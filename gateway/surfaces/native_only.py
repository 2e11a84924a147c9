"""The base of surfaces whose operation chat completions cannot express: vectors, scores, audio, images.

Only a provider that has the operation serves them. A chat completion stands for the request in the stages before the
call: routing, guardrails, limits, and the record.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import msgspec

from core.errors import ValidationError
from gateway.protocol.message_sizes import MAX_MESSAGE_BYTES
from gateway.protocol.wire import AUTO, MAX_MESSAGES, Name, ProviderPreferences, explain
from gateway.surfaces.base import SurfaceRequest
from gateway.surfaces.chat.surface import ChatSurface

T = TypeVar("T")
# No vocabulary is as large, and larger numbers cannot be written again.
Token = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]

# The fields of the gateway that choose providers and users; all surfaces have them.
_ROUTING = ("model", "provider", "user")


class OperationFields(msgspec.Struct, kw_only=True):
    user: str | None = None
    models: list[Name] | None = None
    provider: ProviderPreferences | None = None
    prompt_config: str | None = None
    stream: bool | None = None


class NativeOnlySurface(ChatSurface):
    """Errors have OpenAI's form; the provider's adapter has given the answer the client's form.

    `read` is `Surface.read`; `echo` of its result is the content type of a whole answer other than JSON.
    """

    native_only = True

    def __init__(self, operation: str, read: Callable[[bytes], SurfaceRequest]) -> None:
        self.name = self.operation = operation
        self._read = read

    def read(self, body: bytes) -> SurfaceRequest:
        return self._read(body)

    def content_type(self, request: SurfaceRequest) -> bytes:
        return request.echo or b"application/json"


def decoded(decoder: msgspec.json.Decoder[T], body: bytes) -> T:
    try:
        if not body.isascii():
            # The decoder does not look at the characters of fields that it skips.
            body.decode("utf-8")
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise explain(str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ValidationError("The request body is not valid JSON", code="invalid_json") from None


def refuse_chat_fields(fields: Any, operation: str, *, fallbacks: bool) -> None:
    """Raises ValidationError for fields of the gateway without meaning for `operation`. `fallbacks`: another model may
    answer in place of the request's own."""
    if fields.prompt_config:
        raise ValidationError(f"prompt_config: managed prompts do not apply to {operation}", code=_UNSUPPORTED)
    if fields.models and not fallbacks:
        raise ValidationError(
            f"models: another model's answer cannot replace this model's answer in {operation}", code=_UNSUPPORTED
        )
    if fields.stream:
        raise ValidationError(f"stream: {operation} are answered whole", code=_UNSUPPORTED)
    if fields.model == AUTO:
        raise ValidationError(f"model: auto stands for chat models; name a model for {operation}", code=_UNSUPPORTED)


def as_chat(fields: Any, texts: list[str], place: str) -> bytes:
    """The chat completion that stands for a request in the pipeline's stages.

    It has a user message for each text, or for several together if there are more texts than a chat completion may have
    messages. Raises ValidationError, which names the text at `place` that is too large.
    """
    for index, text in enumerate(texts):
        # A character has at most four bytes.
        if len(text) > MAX_MESSAGE_BYTES // 4 and len(text.encode("utf-8", "replace")) > MAX_MESSAGE_BYTES:
            name = f"{place}[{index}]" if len(texts) > 1 else place
            raise ValidationError(
                f"{name}: more than {MAX_MESSAGE_BYTES} bytes, at most as many are allowed", code="message_too_large"
            )
    body = {name: value for name in _ROUTING if (value := getattr(fields, name)) is not None}
    if fields.models:
        body["models"] = fields.models
    at_once = max(-(-len(texts) // MAX_MESSAGES), 1)
    body["messages"] = [
        {"role": "user", "content": _content(texts[start : start + at_once])} for start in range(0, len(texts), at_once)
    ]
    return msgspec.json.encode(body)


def _content(texts: list[str]) -> str | list[dict[str, str]]:
    return texts[0] if len(texts) == 1 else [{"type": "text", "text": text} for text in texts]


_UNSUPPORTED = "unsupported_parameter"
