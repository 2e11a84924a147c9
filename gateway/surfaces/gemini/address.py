"""The model and the method stand in the address (https://ai.google.dev/api/generate-content#endpoint), also in Vertex
AI's form (https://cloud.google.com/vertex-ai/generative-ai/docs/start/express-mode/overview)."""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import parse_qs, unquote

from core.errors import NotFoundError, ValidationError
from gateway.surfaces.gemini.embed import EmbedSurface
from gateway.surfaces.gemini.surface import CountContentSurface, GeminiSurface

METHODS = ("generateContent", "streamGenerateContent", "countTokens", "embedContent", "batchEmbedContents")

MODEL_PREFIX = r"(?:(?:models/+)+|(?!(?:models|publishers|projects|tunedModels)/)(?=[^/:]+/+[^/:]))"
"""A pattern of what stands before a model's name: `models/`, or nothing before a name with a slash, which
`@ai-sdk/google` takes for a whole path."""
_ROOT = r"/api/gateway/+(?:v1/+)?(?P<version>v1beta1?|v1alpha|v1)/+"
_MODEL = rf"{_ROOT}(?:publishers/+(?P<publisher>[^/]+)/+)?{MODEL_PREFIX}(?P<model>.+?)"
_CALL = re.compile(rf"{_MODEL}:(?P<method>{'|'.join(METHODS)})/?")
_GOOGLE = "google"
_MAX_MODELS = 4096


@lru_cache(maxsize=_MAX_MODELS)
def surface_at(path: str, query: str) -> GeminiSurface | EmbedSurface:
    """Raises NotFoundError for an address without a method, ValidationError for one with a key."""
    found = _CALL.fullmatch(path)
    if found is None:
        raise NotFoundError(f"The gateway has no {path}")
    settings = parse_qs(query)
    refuse_key(settings)
    model = model_of(found)
    match found["method"]:
        case "generateContent":
            return GeminiSurface(model)
        case "countTokens":
            return CountContentSurface(model)
        case "embedContent":
            return EmbedSurface(model, is_batch=False)
        case "batchEmbedContents":
            return EmbedSurface(model, is_batch=True)
    return GeminiSurface(model, streams=True, as_array=settings.get("alt", [""])[-1] != "sse")


@lru_cache(maxsize=_MAX_MODELS)
def surface_at_url(url: str) -> GeminiSurface | EmbedSurface:
    path, _, query = url.partition("?")
    return surface_at(unquote(path) if "%" in path else path, query)


def model_of(found: re.Match[str]) -> str:
    """Clients of Vertex AI write the model's publisher before a slash."""
    publisher = found["publisher"]
    return found["model"] if publisher in (None, _GOOGLE) else f"{publisher}/{found['model']}"


def refuse_key(settings: dict[str, list[str]]) -> None:
    """Raises ValidationError for a key in an address, which proxies and servers write to their logs."""
    if "key" in settings:
        raise ValidationError("key: send the API key in the header x-goog-api-key; addresses end up in logs")
