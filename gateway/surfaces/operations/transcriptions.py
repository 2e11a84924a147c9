"""Reads the form of a transcription (https://platform.openai.com/docs/api-reference/audio/createTranscription)."""

from __future__ import annotations

from core.errors import ValidationError
from gateway.surfaces.base import SurfaceRequest
from gateway.surfaces.native_only import OperationFields, as_chat, refuse_chat_fields
from integrations.providers.common.multipart import Part, parts_of, text_of

_GATEWAYS = ("models", "provider", "prompt_config", "prompt_variables")
FORMATS = {
    "json": b"application/json",
    "verbose_json": b"application/json",
    "diarized_json": b"application/json",
    "text": b"text/plain; charset=utf-8",
    "srt": b"text/plain; charset=utf-8",
    "vtt": b"text/plain; charset=utf-8",
}


class TranscriptionRequest(OperationFields):
    model: str


def read(body: bytes) -> SurfaceRequest:
    """Returns the request with its prompt as a message; `echo` is the content type of the answer. Raises
    ValidationError, which names the field."""
    try:
        parts = {part.name: part for part in parts_of(body)}
    except ValueError as error:
        raise ValidationError(f"The request body has to be a form (multipart/form-data): {error}") from None
    fields = {name: text_of(body, part) for name, part in parts.items() if part.filename is None}
    _check(fields, parts)
    made = TranscriptionRequest(
        model=fields["model"], stream=fields.get("stream", "").lower() == "true", user=fields.get("user")
    )
    refuse_chat_fields(made, "transcriptions", fallbacks=True)
    response_format = fields.get("response_format", "json")
    if response_format not in FORMATS:
        raise ValidationError(f"response_format: expected one of {', '.join(FORMATS)}")
    return SurfaceRequest(as_chat(made, [fields.get("prompt", "")], "prompt"), echo=FORMATS[response_format])


def _check(fields: dict[str, str], parts: dict[str, Part]) -> None:
    for name in ("model", "file"):
        if name not in parts or (name == "model" and not fields.get("model")):
            raise ValidationError(f"{name}: this field is required", code="missing_field")
    for name in _GATEWAYS:
        if name in parts:
            raise ValidationError(f"{name}: a form cannot have this field", code="unsupported_parameter")
