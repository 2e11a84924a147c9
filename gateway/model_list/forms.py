"""The models in the forms that clients read.

OpenAI's list (https://platform.openai.com/docs/api-reference/models) has fields of the gateway's own. The others are
Anthropic's (https://platform.claude.com/docs/en/api/models-list) and Google's (https://ai.google.dev/api/models).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from core.wire.shown import shown_as
from gateway.model_list.catalog import CallableModel
from gateway.protocol.completion_shapes import Model, ModelList, ModelPrefix, ModelPrices
from integrations.capabilities.lookup import Capabilities
from integrations.pricing.cost import Price

_COUNTS = ("context_window", "max_output_tokens")
ABILITY_NAMES = {"schema": "structured_output"}
"""The names of abilities that differ from the fields of Capabilities."""

_METHODS = {"generate_content": ("generateContent", "countTokens"), "embeddings": ("embedContent",)}


def openai_list(models: Collection[CallableModel], prefixes: list[ModelPrefix]) -> ModelList:
    return {"object": "list", "data": [openai_model(model) for model in models], "prefixes": prefixes}


def openai_model(model: CallableModel) -> Model:
    abilities, prices = abilities_entry(model.abilities), prices_entry(model.price)
    return shown_as(Model, model, object="model", abilities=abilities, prices=prices)


def anthropic_list(models: Collection[CallableModel]) -> dict[str, Any]:
    data = [anthropic_model(model) for model in models if "messages" in model.operations]
    return {
        "data": data,
        "has_more": False,
        "first_id": data[0]["id"] if data else None,
        "last_id": data[-1]["id"] if data else None,
    }


def anthropic_model(model: CallableModel) -> dict[str, Any]:
    """An unknown time becomes the beginning of 1970."""
    return {
        "type": "model",
        "id": model.id,
        "display_name": model.name,
        "created_at": datetime.fromtimestamp(model.created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "max_input_tokens": model.context_window,
        "max_tokens": model.max_output_tokens,
    }


def gemini_list(models: Collection[CallableModel]) -> dict[str, Any]:
    return {"models": [made for model in models if (made := gemini_model(model))["supportedGenerationMethods"]]}


def gemini_model(model: CallableModel) -> dict[str, Any]:
    counts = {"inputTokenLimit": model.context_window, "outputTokenLimit": model.max_output_tokens}
    thinks = model.abilities.reasoning
    return {
        "name": f"models/{model.id}",
        "displayName": model.name,
        "version": "",
        **{name: count for name, count in counts.items() if count is not None},
        "supportedGenerationMethods": [
            method for operation in model.operations for method in _METHODS.get(operation, ())
        ],
        **({} if thinks is None else {"thinking": thinks}),
    }


def abilities_entry(known: Capabilities) -> dict[str, bool]:
    return {
        ABILITY_NAMES.get(name, name): able
        for name, able in asdict(known).items()
        if name not in _COUNTS and able is not None
    }


def prices_entry(price: Price | None) -> ModelPrices | None:
    if price is None:
        return None
    return {
        "input_cost_per_1m": _decimal(price.input),
        "output_cost_per_1m": _decimal(price.output),
        "cache_read_cost_per_1m": None if price.cache_read is None else _decimal(price.cache_read),
        "cache_write_cost_per_1m": None if price.cache_write is None else _decimal(price.cache_write),
    }


def _decimal(amount: Decimal) -> str:
    return f"{amount.normalize():f}"
