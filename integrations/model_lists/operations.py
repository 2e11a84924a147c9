"""The operations that a model can be called with, by its name: lists give them for few models, and providers keep to
the customary words in names."""

from __future__ import annotations

import re

from integrations.model_lists.listed import ListedModel

TEXT = ("chat", "responses", "messages", "completions", "generate_content")
"""The operations of a model that answers a conversation, into which the gateway translates them."""
RESPONSES_ONLY = ("responses",)
COMPLETIONS = ("completions",)
EMBEDDINGS = ("embeddings",)
RERANK = ("rerank",)
MODERATIONS = ("moderations",)
TRANSCRIPTIONS = ("transcriptions",)
SPEECH = ("speech",)
IMAGES = ("images",)
NOTHING: tuple[str, ...] = ()
"""The operations of a model that the gateway has no endpoint for."""

# The first pattern that the name holds decides.
_PATTERNS = (
    (re.compile(r"rerank"), RERANK),
    (re.compile(r"embed|(?:^|/)(?:bge|e5|gte)-|voyage-"), EMBEDDINGS),
    (re.compile(r"moderation"), MODERATIONS),
    (re.compile(r"whisper|transcribe|-stt\b|speech-to-text"), TRANSCRIPTIONS),
    (re.compile(r"\btts\b|-speech\b|\borpheus\b|kokoro"), SPEECH),
    (re.compile(r"dall-e|(?:gpt|qwen)-image|grok-.*image|\bimagen|stable-diffusion|\bsdxl|\bflux|seedream"), IMAGES),
    (re.compile(r"\bsora\b|\bveo\b|lyria|realtime|-live\b|\bocr\b|computer-use|robotics"), NOTHING),
    (re.compile(r"^(?:davinci|babbage)-002|^gpt-3\.5-turbo-instruct"), COMPLETIONS),
)
# OpenAI's pages of these models name the Responses API alone: https://platform.openai.com/docs/models
_OPENAI_RESPONSES_ONLY = re.compile(r"^o\d+-pro|^gpt-\d[\d.]*-pro|^gpt-\d.*-codex|deep-research|^gpt-daybreak")
_OPENAI = frozenset({"openai", "azure_openai"})
_SANDBOX = "sandbox"


def operations_of(provider: str, listed: ListedModel) -> tuple[str, ...]:
    operations = _by_name(provider, listed.id)
    return NOTHING if operations is TEXT and not listed.converses else operations


def _by_name(provider: str, model: str) -> tuple[str, ...]:
    if provider == _SANDBOX:
        return (*TEXT, *EMBEDDINGS, *RERANK)
    name = model.lower()
    for pattern, operations in _PATTERNS:
        if pattern.search(name):
            return operations
    if provider in _OPENAI and _OPENAI_RESPONSES_ONLY.search(name):
        return RESPONSES_ONLY
    return NOTHING if "deep-research" in name else TEXT
