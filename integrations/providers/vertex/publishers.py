"""https://cloud.google.com/vertex-ai/generative-ai/docs/model-garden/available-models"""

from __future__ import annotations

from typing import NamedTuple

GOOGLE = "google"
# The beginnings of names that come without their publisher.
_BEGINNINGS = {
    "claude-": "anthropic",
    "codestral": "mistralai",
    "devstral": "mistralai",
    "magistral": "mistralai",
    "ministral": "mistralai",
    "mistral-": "mistralai",
    "pixtral": "mistralai",
    "llama-": "meta",
    "llama3": "meta",
    "deepseek-": "deepseek-ai",
    "gpt-oss-": "openai",
    "glm-": "zai-org",
    "kimi-": "moonshotai",
    "minimax-": "minimaxai",
    "qwen": "qwen",
    "jamba-": "ai21",
}


class PublisherModel(NamedTuple):
    publisher: str
    model: str


def publisher_model(name: str) -> PublisherModel:
    """Reads `publishers/meta/models/llama-…`, `meta/llama-…` or `llama-…`. A name without a known publisher is
    Google's: its own models, and `endpoints/123`, a tuned one."""
    if name.startswith("endpoints/"):
        return PublisherModel(GOOGLE, name)
    publisher, slash, model = name.removeprefix("publishers/").replace("/models/", "/", 1).partition("/")
    if slash and publisher != "models":
        return PublisherModel(publisher, model)
    model = model if slash else publisher
    return PublisherModel(next((name for start, name in _BEGINNINGS.items() if model.startswith(start)), GOOGLE), model)
