"""Reads a request of the Gemini API as a chat completion (https://ai.google.dev/api/generate-content)."""

from __future__ import annotations

import msgspec

from core.errors import ValidationError
from gateway.surfaces.base import SurfaceRequest
from gateway.surfaces.checks import Json, decoded, optional_text
from gateway.surfaces.gemini.config import read_config
from gateway.surfaces.gemini.contents import read_contents, read_instruction
from gateway.surfaces.gemini.fields import message
from gateway.surfaces.gemini.plain import plain_chat
from gateway.surfaces.gemini.tools import read_tools
from gateway.surfaces.tool_names import fit_names
from integrations.providers.google.field_names import camel

# The gateway acts on these fields itself, under the names that they have in a chat completion.
OF_THE_GATEWAY = frozenset({"models", "provider", "prompt_config", "prompt_variables"})
_READ_TOGETHER = frozenset(
    {"contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "serviceTier", "model"}
)
# Google's adapter takes these out of a chat completion, and others leave them out.
_GOOGLES = frozenset({"safetySettings", "labels", "modelArmorConfig", "continuationToken"})
_CACHED = "cachedContent"
_STANDARD = "standard"
# These fields concern the answer, which a request to count tokens has none of.
_OF_ANSWERS = frozenset({"generationConfig", "safetySettings"})
_COUNTED = "generateContentRequest"

_encode = msgspec.json.Encoder().encode


def read(body: bytes, model: str, *, stream: bool) -> SurfaceRequest:
    """Returns the request to the model that the address names. Raises ValidationError (400), whose message names the
    client's field. `echo` of the result is True where the client wants to see thoughts."""
    fields = decoded(body)
    plain = plain_chat(fields, model)
    if plain is None:
        return translated(_spelled(fields), model, stream=stream)
    if stream:
        plain["stream"] = True
    return SurfaceRequest(_encode(plain), echo=False, fields=plain, is_plain=True, is_translated=True)


def read_count(body: bytes, model: str) -> SurfaceRequest:
    """Returns the request to count tokens as the chat completion whose prompt is to be counted
    (https://ai.google.dev/api/tokens). Raises ValidationError."""
    fields = _spelled(decoded(body))
    counted = fields.pop(_COUNTED, None)
    if counted is None:
        return _counted(fields, model)
    inner = message(counted, _COUNTED)
    try:
        return _counted(fields | inner, model)
    except ValidationError as error:
        raise ValidationError(f"{_COUNTED}.{error.message}", code=error.code) from None


def _counted(fields: Json, model: str) -> SurfaceRequest:
    return translated({name: fields[name] for name in fields if name not in _OF_ANSWERS}, model, stream=False)


def _spelled(fields: Json) -> Json:
    """Returns the fields with Google's in camelCase."""
    return {name if name in OF_THE_GATEWAY else camel(name): value for name, value in fields.items()}


def translated(fields: Json, model: str, *, stream: bool) -> SurfaceRequest:
    """Returns the request with these fields. Raises ValidationError."""
    untranslatable: list[str] = []
    warnings: list[str] = []
    messages = read_instruction(fields) + read_contents(fields, untranslatable)
    made: Json = {"model": model, "messages": messages}
    for name, value in fields.items():
        if value is None or name in _READ_TOGETHER:
            continue
        if name in OF_THE_GATEWAY or name in _GOOGLES:
            made[name] = value
        elif name == _CACHED:
            made[name] = value
            untranslatable.append(f"{name}: only Google has the cache that it names")
        else:
            untranslatable.append(f"{name}: a chat completion has no such field")
    if tier := optional_text(fields, "serviceTier"):
        made["service_tier"] = "default" if tier.lower() == _STANDARD else tier.lower()
    if "tools" in fields or "toolConfig" in fields:
        made |= read_tools(fields, untranslatable, warnings)
    parameters, shows_thoughts = read_config(fields, untranslatable)
    made |= parameters
    if stream:
        made["stream"] = True
    tool_names = fit_names(made)
    return SurfaceRequest(
        _encode(made),
        tuple(untranslatable),
        echo=shows_thoughts,
        fields=made,
        is_translated=True,
        warnings=tuple(warnings),
        tool_names=tool_names,
    )
