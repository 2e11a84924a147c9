"""The wire form of what the vendors' prompt caches saved and missed."""

from __future__ import annotations

from decimal import Decimal
from typing import TypedDict
from uuid import UUID

from analytics.queries.prompt_cache import PromptCacheRow


class PromptCacheFigures(TypedDict):
    """`missed_usd` is null where the model has no known price of reads."""

    provider: str
    model: str
    prompt_config_id: UUID | None
    prompt_version: int | None
    request_count: int
    input_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    saved_usd: float
    missed_tokens: int
    missed_usd: float | None


def prompt_cache(row: PromptCacheRow, missed_usd: Decimal | None) -> PromptCacheFigures:
    return {
        "provider": row.provider,
        "model": row.model,
        "prompt_config_id": row.prompt_config_id if row.prompt_config_id.int else None,
        "prompt_version": row.prompt_version or None,
        "request_count": row.requests,
        "input_tokens": row.prompt_tokens,
        "cache_read_tokens": row.cache_read_tokens,
        "cache_write_tokens": row.cache_write_tokens,
        "saved_usd": float(row.saved_usd),
        "missed_tokens": row.missed_tokens,
        "missed_usd": None if missed_usd is None else float(missed_usd),
    }
