"""Providers that speak the OpenAI dialect as it is: a row each. Addresses are the vendors' documented ones."""

from __future__ import annotations

from integrations.providers.openai import Dialect, OpenAIAdapter
from integrations.providers.openai_request import Documents, Thinking

DIALECTS = (
    Dialect("groq", "https://api.groq.com/openai/v1", default_model="llama-3.3-70b-versatile", thinking=Thinking.DROP),
    Dialect("deepseek", "https://api.deepseek.com/v1", owned_by="deepseek", default_model="deepseek-chat"),
    Dialect("xai", "https://api.x.ai/v1", owned_by="xai", default_model="grok-4", thinking=Thinking.DROP),
    Dialect(
        "openrouter",
        "https://openrouter.ai/api/v1",
        default_model="openrouter/auto",
        documents=Documents.FILE_URL,  # https://openrouter.ai/docs/features/multimodal/pdfs
        thinking=Thinking.REASONING,
    ),
    Dialect("together", "https://api.together.xyz/v1", default_model="meta-llama/Llama-3.3-70B-Instruct-Turbo"),
    Dialect(
        "fireworks",
        "https://api.fireworks.ai/inference/v1",
        default_model="accounts/fireworks/models/llama-v3p3-70b-instruct",
    ),
    Dialect("perplexity", "https://api.perplexity.ai", default_model="sonar", thinking=Thinking.DROP),
    Dialect("cerebras", "https://api.cerebras.ai/v1", default_model="llama-3.3-70b", thinking=Thinking.DROP),
    Dialect("huggingface", "https://router.huggingface.co/v1", default_model="meta-llama/Llama-3.3-70B-Instruct"),
    Dialect("zai", "https://api.z.ai/api/paas/v4", owned_by="zai", default_model="glm-4.6"),
    Dialect("snowflake", "", default_model="claude-sonnet-4-5", thinking=Thinking.DROP),
    Dialect("ollama", "http://127.0.0.1:11434/v1", documents=Documents.PASS, optional_secret=True),
    Dialect("vllm", "", documents=Documents.PASS, optional_secret=True),
    Dialect("openai_compatible", "", documents=Documents.PASS, optional_secret=True),
    Dialect(
        "sandbox",
        "",
        owned_by="sandbox",
        default_model="echo",
        documents=Documents.PASS,
        optional_secret=True,
    ),
)

ADAPTERS = {dialect.provider: OpenAIAdapter(dialect) for dialect in DIALECTS}
