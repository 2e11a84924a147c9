"""Tests that the counts of a response are read alike, whether a vendor sends those that OpenAI documents or others."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from integrations.providers.common.usage import read_usage
from integrations.providers.openai.responses_shapes import Response, chat_usage, usage_of

COUNT = st.integers(0, 30) | st.sampled_from([None, -1, 1.5, True, "3"])
DETAILS = st.dictionaries(
    st.sampled_from(["cached_tokens", "reasoning_tokens", "audio_tokens", "cache_write_tokens"]), COUNT, max_size=3
)
USAGE = st.fixed_dictionaries(
    {"input_tokens": COUNT, "output_tokens": COUNT, "total_tokens": COUNT},
    optional={
        "input_tokens_details": DETAILS | st.none(),
        "output_tokens_details": DETAILS | st.none(),
        "cost": st.just(0.25),
        "service_tier": st.just("flex"),
    },
)


@given(usage=USAGE, tier=st.sampled_from([None, "default", "auto", "priority", "flex", 7]))
def test_usage__any_counts__as_field_by_field(usage: dict[str, Any], tier: object) -> None:
    assert usage_of(Response(usage=usage, service_tier=tier)) == read_usage(chat_usage(usage), tier)
