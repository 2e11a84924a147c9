"""The operations that no chat completion can express, each with the request that a provider gets as it came."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from core.errors import ValidationError
from gateway.protocol.wire import Name, Word
from gateway.surfaces.base import SurfaceRequest
from gateway.surfaces.native_only import NativeOnlySurface, OperationFields, Token, as_chat, decoded, refuse_chat_fields
from integrations.providers.common.multipart import Part, parts_of, text_of

MAX_INPUTS = 2048
"""The most inputs of one request for embeddings, which is OpenAI's own bound."""
MAX_DOCUMENTS = 1000
MEDIA_TYPES = {
    "mp3": b"audio/mpeg",
    "opus": b"audio/ogg",
    "aac": b"audio/aac",
    "flac": b"audio/flac",
    "wav": b"audio/wav",
    "pcm": b"audio/pcm",
}
"""The content type of speech, by the format that the request asks for."""
TRANSCRIPT_TYPES = {
    "json": b"application/json",
    "verbose_json": b"application/json",
    "diarized_json": b"application/json",
    "text": b"text/plain; charset=utf-8",
    "srt": b"text/plain; charset=utf-8",
    "vtt": b"text/plain; charset=utf-8",
}
"""The content type of a transcription, by the format that the request asks for."""
_NOT_IN_FORMS = ("models", "provider", "prompt_config", "prompt_variables")

Document = str | dict[str, msgspec.Raw]
Fields = TypeVar("Fields", bound=OperationFields)


# https://platform.openai.com/docs/api-reference/embeddings/create
class EmbeddingRequest(OperationFields):
    model: Name
    input: str | list[str | Token | list[Token]]
    dimensions: Annotated[int, msgspec.Meta(ge=1, le=65_536)] | None = None
    encoding_format: Literal["float", "base64"] | None = None
    input_type: Word | None = None


# https://platform.openai.com/docs/api-reference/moderations/create
class ModerationRequest(OperationFields):
    input: str | list[str | dict[str, Any]]
    model: Name = "omni-moderation-latest"


# https://docs.cohere.com/reference/rerank
class RerankRequest(OperationFields):
    model: Name
    query: str
    documents: list[Document]
    top_n: Annotated[int, msgspec.Meta(ge=1)] | None = None


# https://platform.openai.com/docs/api-reference/images/create
class ImageRequest(OperationFields):
    model: Name
    prompt: str


# https://platform.openai.com/docs/api-reference/audio/createSpeech
class SpeechRequest(OperationFields):
    model: Name
    input: str
    response_format: Literal["mp3", "opus", "aac", "flac", "wav", "pcm"] = "mp3"
    stream_format: str | None = None


# https://platform.openai.com/docs/api-reference/audio/createTranscription
class _TranscriptionRequest(OperationFields):
    model: str


def _embeddings(fields: EmbeddingRequest) -> SurfaceRequest:
    given: list[Any] = [fields.input] if isinstance(fields.input, str) else fields.input
    kinds = {type(one) for one in given}
    if len(kinds) > 1:
        raise ValidationError("input: expected texts, tokens, or arrays of tokens, but not a mixture of them")
    if kinds == {int}:
        given, kinds = [given], {list}
    if len(given) > MAX_INPUTS:
        raise ValidationError(f"input: {len(given)} inputs, at most {MAX_INPUTS} are allowed")
    if not given:
        raise ValidationError("input: at least one input is required")
    for index, one in enumerate(given):
        if not one:
            raise ValidationError(f"input[{index}]: an input is empty" if len(given) > 1 else "input: it is empty")
    if kinds != {list}:
        return SurfaceRequest(as_chat(fields, given, "input"))
    texts = [msgspec.json.encode(one).decode() for one in given]
    opaque = "input: token arrays cannot be read by this project's guardrails; send texts"
    return SurfaceRequest(as_chat(fields, texts, "input"), opaque=opaque)


def _moderation(fields: ModerationRequest) -> SurfaceRequest:
    given = [fields.input] if isinstance(fields.input, str) else fields.input
    if not given:
        raise ValidationError("input: at least one input is required")
    texts = [one if isinstance(one, str) else str(one.get("text") or "") for one in given]
    return SurfaceRequest(as_chat(fields, texts, "input"))


def _rerank(fields: RerankRequest) -> SurfaceRequest:
    if not 0 < len(fields.documents) <= MAX_DOCUMENTS:
        raise ValidationError(f"documents: {len(fields.documents)} documents, from 1 to {MAX_DOCUMENTS} are allowed")
    return SurfaceRequest(as_chat(fields, [fields.query, *map(_text_of, fields.documents)], "documents"))


def _text_of(document: Document) -> str:
    if isinstance(document, str):
        return document
    text = bytes(document.get("text", b""))
    return msgspec.json.decode(text, type=str) if text.startswith(b'"') else msgspec.json.encode(document).decode()


def _image(fields: ImageRequest) -> SurfaceRequest:
    return SurfaceRequest(as_chat(fields, [fields.prompt], "prompt"))


def _speech(fields: SpeechRequest) -> SurfaceRequest:
    if fields.stream_format not in (None, "audio"):
        raise ValidationError("stream_format: speech cannot be streamed as events", code="unsupported_parameter")
    return SurfaceRequest(as_chat(fields, [fields.input], "input"), echo=MEDIA_TYPES[fields.response_format])


def _read_transcription(body: bytes) -> SurfaceRequest:
    """Returns the request in a form, with its prompt as a message."""
    try:
        parts = {part.name: part for part in parts_of(body)}
    except ValueError as error:
        raise ValidationError(f"The request body has to be a form (multipart/form-data): {error}") from None
    fields = {name: text_of(body, part) for name, part in parts.items() if part.filename is None}
    _check_form(fields, parts)
    made = _TranscriptionRequest(
        model=fields["model"], stream=fields.get("stream", "").lower() == "true", user=fields.get("user")
    )
    refuse_chat_fields(made, "transcriptions", fallbacks=True)
    response_format = fields.get("response_format", "json")
    if response_format not in TRANSCRIPT_TYPES:
        raise ValidationError(f"response_format: expected one of {', '.join(TRANSCRIPT_TYPES)}")
    return SurfaceRequest(as_chat(made, [fields.get("prompt", "")], "prompt"), echo=TRANSCRIPT_TYPES[response_format])


def _check_form(fields: dict[str, str], parts: dict[str, Part]) -> None:
    for name in ("model", "file"):
        if name not in parts or (name == "model" and not fields.get("model")):
            raise ValidationError(f"{name}: this field is required", code="missing_field")
    for name in _NOT_IN_FORMS:
        if name in parts:
            raise ValidationError(f"{name}: a form cannot have this field", code="unsupported_parameter")


def _surface(
    operation: str, kind: type[Fields], request_of: Callable[[Fields], SurfaceRequest], *, fallbacks: bool = True
) -> NativeOnlySurface:
    """Returns the surface of requests with the fields of `kind`, of which `request_of` makes one with a message for
    each text."""
    decoder = msgspec.json.Decoder(kind)

    def read(body: bytes) -> SurfaceRequest:
        fields = decoded(decoder, body)
        refuse_chat_fields(fields, operation, fallbacks=fallbacks)
        return request_of(fields)

    return NativeOnlySurface(operation, read)


EMBEDDINGS = _surface("embeddings", EmbeddingRequest, _embeddings, fallbacks=False)
MODERATIONS = _surface("moderations", ModerationRequest, _moderation)
RERANK = _surface("rerank", RerankRequest, _rerank)
IMAGES = _surface("images", ImageRequest, _image)
SPEECH = _surface("speech", SpeechRequest, _speech)
TRANSCRIPTIONS = NativeOnlySurface("transcriptions", _read_transcription)
