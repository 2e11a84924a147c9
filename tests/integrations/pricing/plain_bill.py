"""Computes the cost of a recorded answer independently of the product: from the vendor's raw usage as sent on the wire
and the catalogs' raw entries, in fractions, without imports from the product."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from botocore.eventstream import EventStreamBuffer

Fields = Mapping[str, Any]
_MILLION = Fraction(1_000_000)


def documents(body: bytes) -> Iterator[Fields]:
    """Returns the JSON objects of a body: one, a list of them, or those of a stream's events."""
    if body[:1] == b"\x00":
        frames = EventStreamBuffer()
        frames.add_data(body)
        yield from (json.loads(frame.payload) for frame in frames)
        return
    text = body.decode("utf-8", "replace")
    try:
        found = json.loads(text)
    except json.JSONDecodeError:
        for line in text.replace("\r", "\n").split("\n"):
            payload = line.removeprefix("data:").strip()
            if payload.startswith("{"):
                yield json.loads(payload)
        return
    yield from found if isinstance(found, list) else [found]


def stated(body: bytes) -> Fraction | None:
    """Returns the US dollars that the answer itself states as its cost, None without a statement."""
    cost: Fraction | None = None
    for document in documents(body):
        usage = document.get("usage") or {}
        if isinstance(usage.get("cost"), dict):
            cost = Fraction(str(usage["cost"]["total_cost"]))
        elif "cost" in usage:
            cost = Fraction(str(usage["cost"]))
            if usage.get("is_byok"):
                cost += Fraction(str(usage["cost_details"]["upstream_inference_cost"]))
        elif usage.get("cost_in_usd_ticks"):
            cost = Fraction(usage["cost_in_usd_ticks"], 10**10)
    return cost


class Counts:
    """The tokens of an answer by class: `fresh`, `read`, `written`, `written_1h`, `audio_in`, `image_in`, `text_out`,
    `audio_out`, `image_out`, `thought`; the number of `searches`; and `prompt`, which decides on the tier."""

    def __init__(self, **tokens: int) -> None:
        self.tokens = {name: max(count, 0) for name, count in tokens.items()}

    def __getitem__(self, name: str) -> int:
        return self.tokens.get(name, 0)


def openai_counts(body: bytes) -> Counts | None:
    usage: Fields = {}
    for document in documents(body):
        usage = document.get("usage") or (document.get("x_groq") or {}).get("usage") or usage
    if not usage:
        return None
    prompt_details, details = usage.get("prompt_tokens_details") or {}, usage.get("completion_tokens_details") or {}
    prompt, completion = usage["prompt_tokens"], usage["completion_tokens"]
    thought = details.get("reasoning_tokens") or usage.get("reasoning_tokens") or 0
    if thought and usage.get("total_tokens") == prompt + completion + thought:
        completion += thought
    read = prompt_details.get("cached_tokens") or usage.get("prompt_cache_hit_tokens") or usage.get("cached_tokens")
    read = min(read or usage.get("num_cached_tokens") or 0, prompt)
    written = prompt_details.get("cache_write_tokens") or 0
    audio_in, image_in = prompt_details.get("audio_tokens") or 0, prompt_details.get("image_tokens") or 0
    audio_out = min(details.get("audio_tokens") or 0, completion)
    thought = min(thought, completion - audio_out)
    return Counts(
        prompt=prompt,
        read=read,
        written=written,
        audio_in=audio_in,
        image_in=image_in,
        fresh=prompt - read - written - audio_in - image_in,
        audio_out=audio_out,
        thought=thought,
        text_out=completion - thought - audio_out,
        searches=1 if usage.get("search_context_size") else 0,
    )


def anthropic_counts(body: bytes) -> Counts | None:
    usage: dict[str, Any] = {}
    for document in documents(body):
        for found in (document.get("usage"), (document.get("message") or {}).get("usage")):
            usage |= {name: value for name, value in (found or {}).items() if value is not None}
    if not usage:
        return None
    read, written = usage.get("cache_read_input_tokens", 0), usage.get("cache_creation_input_tokens", 0)
    written_1h = (usage.get("cache_creation") or {}).get("ephemeral_1h_input_tokens", 0)
    return Counts(
        prompt=usage["input_tokens"] + read + written,
        fresh=usage["input_tokens"],
        read=read,
        written=written - written_1h,
        written_1h=written_1h,
        text_out=usage["output_tokens"],
        searches=(usage.get("server_tool_use") or {}).get("web_search_requests") or 0,
    )


def google_counts(body: bytes) -> Counts | None:
    usage: Fields = {}
    queries = 0
    for document in documents(body):
        found = document.get("usageMetadata") or {}
        usage = found if "promptTokenCount" in found else usage
        for candidate in document.get("candidates") or ():
            queries = len((candidate.get("groundingMetadata") or {}).get("webSearchQueries") or ()) or queries
    if not usage:
        return None
    prompt = usage["promptTokenCount"] + usage.get("toolUsePromptTokenCount", 0)
    read, thought = usage.get("cachedContentTokenCount", 0), usage.get("thoughtsTokenCount", 0)
    audio_in, image_in = (_of_modality(usage, "promptTokensDetails", name) for name in ("AUDIO", "IMAGE"))
    drawn = _of_modality(usage, "candidatesTokensDetails", "IMAGE")
    return Counts(
        prompt=prompt,
        read=read,
        audio_in=audio_in,
        image_in=image_in,
        fresh=prompt - read - audio_in - image_in,
        thought=thought,
        image_out=drawn,
        text_out=usage.get("candidatesTokenCount", 0) - drawn,
        searches=queries,
    )


def cohere_counts(body: bytes) -> Counts | None:
    units: Fields = {}
    for document in documents(body):
        usage = document.get("usage") or (document.get("delta") or {}).get("usage") or {}
        units = usage.get("billed_units") or units
    if not units:
        return None
    sent = int(units.get("input_tokens", 0))
    return Counts(prompt=sent, fresh=sent, text_out=int(units.get("output_tokens", 0)))


def bedrock_counts(body: bytes) -> Counts | None:
    usage: Fields = next((document["usage"] for document in documents(body) if document.get("usage")), {})
    if not usage:
        return None
    read, written = usage.get("cacheReadInputTokens", 0), usage.get("cacheWriteInputTokens", 0)
    return Counts(
        prompt=usage["inputTokens"] + read + written,
        fresh=usage["inputTokens"],
        read=read,
        written=written,
        text_out=usage["outputTokens"],
    )


def _of_modality(usage: Fields, name: str, modality: str) -> int:
    return sum(detail.get("tokenCount", 0) for detail in usage.get(name) or () if detail["modality"] == modality)


_LENGTHS = (32, 100, 128, 200, 256, 272, 512)
_A = {
    "fresh": ("input_cost_per_token",),
    "read": ("cache_read_input_token_cost", "input_cost_per_token"),
    "written": ("cache_creation_input_token_cost", "input_cost_per_token"),
    "written_1h": (
        "cache_creation_input_token_cost_above_1hr",
        "cache_creation_input_token_cost",
        "input_cost_per_token",
    ),
    "audio_in": ("input_cost_per_audio_token", "input_cost_per_token"),
    "image_in": ("input_cost_per_image_token", "input_cost_per_token"),
    "text_out": ("output_cost_per_token",),
    "thought": ("output_cost_per_reasoning_token", "output_cost_per_token"),
    "audio_out": ("output_cost_per_audio_token", "output_cost_per_token"),
    "image_out": ("output_cost_per_image_token", "output_cost_per_token"),
}
_B = {
    "fresh": ("input",),
    "read": ("cache_read", "input"),
    "written": ("cache_write", "input"),
    "written_1h": ("cache_write", "input"),
    "audio_in": ("input_audio", "input"),
    "image_in": ("input",),
    "text_out": ("output",),
    "thought": ("reasoning", "output"),
    "audio_out": ("output_audio", "output"),
    "image_out": ("output",),
}


def cost_by_a(counts: Counts, entry: Fields, *, size: str = "medium") -> Fraction:
    """Returns the cost by an entry of catalog A, whose prices are US dollars per token."""
    suffixes = [f"_above_{length}k_tokens" for length in reversed(_LENGTHS) if counts["prompt"] > length * 1000] + [""]
    total = Fraction(0)
    for kind, names in _A.items():
        costs = (entry.get(name + suffix) for name in names for suffix in suffixes)
        total += counts[kind] * Fraction(str(next(cost for cost in costs if cost is not None)))
    fees = entry.get("search_context_cost_per_query") or {}
    return total + counts["searches"] * Fraction(str(fees.get(f"search_context_size_{size}", 0)))


def cost_by_b(counts: Counts, cost: Fields) -> Fraction:
    """Returns the cost by an entry of catalog B, whose prices are US dollars per 1,000,000 tokens."""
    steps = sorted(cost.get("tiers") or (), key=lambda tier: -int(tier["tier"]["size"]))
    levels = [tier for tier in steps if counts["prompt"] > tier["tier"]["size"]] + [cost]
    total = Fraction(0)
    for kind, names in _B.items():
        rates = (level.get(name) for name in names for level in levels)
        total += counts[kind] * Fraction(str(next(rate for rate in rates if rate is not None))) / _MILLION
    return total
