"""Adds the gateway's paths and the bounds of their bodies to the OpenAPI document.

Channels serves these paths, so the generator finds no views. Bodies are generated from the types that the surfaces
decode, or from those in `gateway.openapi.requests`: the gateway's own fields and those that it acts on. All other
fields are the vendors', whose pages the document links.
"""

from __future__ import annotations

from typing import Any

from gateway.openapi.models import GEMINI_MODELS, MODELS, gemini_model, gemini_models, model, models
from gateway.openapi.probes import probes
from gateway.openapi.protocols import BOUNDS, PROTOCOLS, described
from gateway.openapi.stored import STORED, stored
from gateway.openapi.stored_objects import stored_objects
from gateway.protocol.wire import MAX_FALLBACK_MODELS


def add_gateway(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    paths = result["paths"]
    for protocol in PROTOCOLS:
        paths[protocol.path] = {"post": described(protocol)}
    paths[STORED] = stored()
    paths |= stored_objects()
    paths[MODELS] = {"get": models()}
    paths[f"{MODELS}/{{model}}"] = {"get": model()}
    paths[GEMINI_MODELS] = {"get": gemini_models()}
    paths[f"{GEMINI_MODELS}/{{model}}"] = {"get": gemini_model()}
    paths |= probes()
    return result


def add_bounds(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    schemas = result["components"]["schemas"]
    for component, field, least, most in BOUNDS:
        _bound(schemas[component]["properties"][field], {"minItems": least, "maxItems": most})
    for protocol in PROTOCOLS:
        fields = schemas.get(protocol.body.get("$ref", "").rpartition("/")[2], protocol.body)["properties"]
        if "models" in fields:
            _bound(fields["models"], {"maxItems": MAX_FALLBACK_MODELS})
    return result


def _bound(field: dict[str, Any], bounds: dict[str, int]) -> None:
    for choice in field.get("anyOf", [field]):
        if choice.get("type") == "array":
            choice.update(bounds)
