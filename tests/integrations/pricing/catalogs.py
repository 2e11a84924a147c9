"""Makes small catalogs in both formats."""

from __future__ import annotations

from typing import Any


def model_a(
    input: float, output: float, read: float | None = None, write: float | None = None, provider: str = "openai"
) -> dict[str, Any]:
    """Returns a model of catalog A. Arguments are dollars per 1,000,000 tokens; the catalog has dollars per token."""
    named = {
        "input_cost_per_token": input,
        "output_cost_per_token": output,
        "cache_read_input_token_cost": read,
        "cache_creation_input_token_cost": write,
    }
    prices = {name: float(f"{cost}e-6") for name, cost in named.items() if cost is not None}
    return {"litellm_provider": provider, "mode": "chat", **prices}


def catalog_b(**providers: dict[str, tuple[float, float]]) -> dict[str, Any]:
    """Returns catalog B from a mapping of providers to models to the input and output price in dollars per 1,000,000
    tokens."""
    return {
        provider: {
            "id": provider,
            "models": {
                model: {"id": model, "cost": {"input": cost[0], "output": cost[1]}} for model, cost in models.items()
            },
        }
        for provider, models in providers.items()
    }
