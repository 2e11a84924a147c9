"""Requests of the playground's clients."""

from __future__ import annotations

from typing import Any

import httpx2

from tests.gateway.service import Gateway

MESSAGES = [{"role": "user", "content": "What is the capital of France?"}]


def ask(gateway: Gateway, **fields: Any) -> httpx2.Response:
    return gateway.manage("POST", "playground", {"model": "openai/gpt-4o", "messages": MESSAGES, **fields})


def compare(gateway: Gateway, *models: str, **fields: Any) -> httpx2.Response:
    return gateway.manage("POST", "playground/compare", {"messages": MESSAGES, "compare_models": models, **fields})


def results(response: httpx2.Response) -> dict[str, dict[str, Any]]:
    """Returns the results by model."""
    assert response.status_code == 200, response.text
    return {result["model"]: result for result in response.json()["results"]}
