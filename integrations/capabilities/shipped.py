"""The list of models' capabilities that ships with the product, written by `manage.py build_capabilities`. Its form is
`{provider: {model: [context window, largest output, flags]}}`: token counts, null where unknown, and one letter for
each ability, abilities that the model lacks after a minus: `"itpr-dav"`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from integrations.pricing import catalog_a, catalog_b
from integrations.pricing.entries import MODEL_LENGTH

CAPABILITIES = Path(__file__).with_name("capabilities.json")

_LETTERS = {
    "i": "images",
    "d": "documents",
    "a": "audio",
    "v": "video",
    "t": "tools",
    "p": "parallel_tools",
    "s": "schema",
    "r": "reasoning",
}
_CATALOG_A_FLAGS = {
    "images": "supports_vision",
    "documents": "supports_pdf_input",
    "audio": "supports_audio_input",
    "video": "supports_video_input",
    "tools": "supports_function_calling",
    "parallel_tools": "supports_parallel_function_calling",
    "schema": "supports_response_schema",
    "reasoning": "supports_reasoning",
}
_CATALOG_B_FLAGS = {"tools": "tool_call", "schema": "structured_output", "reasoning": "reasoning"}
_CATALOG_B_INPUTS = {"images": "image", "documents": "pdf", "audio": "audio", "video": "video"}
# Bedrock, Mistral and OpenRouter extract the text of a document themselves, also for models without vision:
# https://docs.aws.amazon.com/bedrock/latest/userguide/conversation-inference-supported-models-features.html,
# https://docs.mistral.ai/capabilities/document_ai/document_qna/, https://openrouter.ai/docs/features/multimodal/pdfs
_READ_DOCUMENTS = frozenset({"bedrock", "mistral", "openrouter"})
# Bedrock lists its prices by region and commitment under names with a prefix; they belong to the same models.
_PRICED_VARIANT = re.compile(r"^[a-z]{2}(?:-gov)?-[a-z]+-\d/")
# The pattern matches the prefixes of cross-region inference profiles: `us.`, `apac.`, `global.`
# (https://docs.aws.amazon.com/bedrock/latest/userguide/inference-profiles-support.html).
_REGION = re.compile(r"^(?:global|[a-z]{2,4}|us-gov)\.(?=[a-z0-9-]+\.)")
_MAX_TOKENS = 100_000_000


@dataclass(frozen=True, slots=True)
class Listed:
    context: int | None
    output: int | None
    flags: Mapping[str, bool]


_NOTHING = Listed(None, None, {})


def build(first: Any, second: Any) -> str:
    """Returns the list's JSON from the two decoded catalogs. Raises CatalogError.

    Where they differ, the model has an ability that either lists, and the larger context window: a model listed as
    unable gets no requests, so errors have to favour ability. The largest output is that of the first catalog, which is
    more exact there.
    """
    merged: dict[tuple[str, str], Listed] = {}
    for provider, model, found in (*_from_a(first), *_from_b(second)):
        model = without_region(model) if provider == "bedrock" else model
        if model and len(model) <= MODEL_LENGTH and not _PRICED_VARIANT.match(model):
            known = merged.get((provider, model))
            merged[provider, model] = found if known is None else _merge(known, found)
    return _dump({key: found for key, found in merged.items() if found != _NOTHING})


def entries() -> dict[str, dict[str, Listed]]:
    listed: Mapping[str, Mapping[str, tuple[int | None, int | None, str]]] = json.loads(CAPABILITIES.read_bytes())
    return {
        provider: {
            model: Listed(context, output, _flags(letters)) for model, (context, output, letters) in rows.items()
        }
        for provider, rows in listed.items()
    }


def without_region(model: str) -> str:
    """Strips the prefix of a Bedrock inference profile: the model is the same in every region."""
    return _REGION.sub("", model)


def _from_a(catalog: Any) -> Iterator[tuple[str, str, Listed]]:
    for provider, model, fields in catalog_a.models(catalog):
        flags = {name: fields[key] for name, key in _CATALOG_A_FLAGS.items() if isinstance(fields.get(key), bool)}
        yield (
            provider,
            model,
            Listed(_tokens(fields.get("max_input_tokens")), _tokens(fields.get("max_output_tokens")), flags),
        )


def _from_b(catalog: Any) -> Iterator[tuple[str, str, Listed]]:
    for provider, model, fields in catalog_b.models(catalog):
        modalities, limit = fields.get("modalities"), fields.get("limit")
        modalities = modalities if isinstance(modalities, dict) else {}
        limit = limit if isinstance(limit, dict) else {}
        if "text" not in modalities.get("output", ["text"]):
            continue
        flags = {name: fields[key] for name, key in _CATALOG_B_FLAGS.items() if isinstance(fields.get(key), bool)}
        flags |= _inputs(provider, modalities.get("input"))
        yield provider, model, Listed(_tokens(limit.get("context")), _tokens(limit.get("output")), flags)


def _inputs(provider: str, listed: Any) -> dict[str, bool]:
    if not isinstance(listed, list):
        return {}
    flags = {name: kind in listed for name, kind in _CATALOG_B_INPUTS.items()}
    if not flags["documents"] and (any(flags.values()) or provider in _READ_DOCUMENTS):
        # A catalog often leaves PDF out of a list of inputs, so a missing PDF means inability only for a model that
        # takes nothing but text.
        del flags["documents"]
    return flags


def _merge(first: Listed, second: Listed) -> Listed:
    contexts = [context for context in (first.context, second.context) if context is not None]
    flags = {name: able or first.flags.get(name, False) for name, able in second.flags.items()}
    return Listed(max(contexts, default=None), first.output or second.output, {**first.flags, **flags})


def _tokens(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        count = int(value)
    except (ValueError, OverflowError):
        return None
    return count if 0 < count <= _MAX_TOKENS else None


def _flags(letters: str) -> dict[str, bool]:
    able, _, unable = letters.partition("-")
    return {_LETTERS[letter]: True for letter in able} | {_LETTERS[letter]: False for letter in unable}


def _letters(flags: Mapping[str, bool]) -> str:
    able = "".join(letter for letter, name in _LETTERS.items() if flags.get(name) is True)
    unable = "".join(letter for letter, name in _LETTERS.items() if flags.get(name) is False)
    return f"{able}-{unable}" if unable else able


def _dump(merged: Mapping[tuple[str, str], Listed]) -> str:
    rows: dict[str, list[str]] = {}
    for (provider, model), found in sorted(merged.items(), key=lambda item: item[0]):
        facts = json.dumps([found.context, found.output, _letters(found.flags)])
        rows.setdefault(provider, []).append(f" {json.dumps(model)}: {facts}")
    blocks = [f"{json.dumps(provider)}: {{\n" + ",\n".join(lines) + "\n}" for provider, lines in rows.items()]
    return "{\n" + ",\n".join(blocks) + "\n}\n"
