from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from integrations.providers.common.usage import completed_usage, read_usage, usage_object
from integrations.providers.usage import Usage


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (
            {
                "prompt_tokens": 100,
                "completion_tokens": 50,
                "total_tokens": 150,
                "prompt_tokens_details": {"cached_tokens": 30, "audio_tokens": 0},
                "completion_tokens_details": {"reasoning_tokens": 20},
            },
            Usage(100, 50, cache_read_tokens=30, reasoning_tokens=20),
        ),
        (  # The usage has DeepSeek's form.
            {
                "prompt_tokens": 100,
                "completion_tokens": 5,
                "prompt_cache_hit_tokens": 64,
                "prompt_cache_miss_tokens": 36,
            },
            Usage(100, 5, cache_read_tokens=64),
        ),
        (  # xAI counts reasoning tokens beside completion tokens, as the total shows.
            {
                "prompt_tokens": 10,
                "completion_tokens": 5,
                "total_tokens": 115,
                "completion_tokens_details": {"reasoning_tokens": 100},
            },
            Usage(10, 105, reasoning_tokens=100),
        ),
        (  # OpenRouter reports a cache write.
            {
                "prompt_tokens": 1000,
                "completion_tokens": 1,
                "total_tokens": 1001,
                "prompt_tokens_details": {"cached_tokens": 200, "cache_write_tokens": 700},
            },
            Usage(1000, 1, cache_read_tokens=200, cache_write_tokens=700),
        ),
        ({"prompt_tokens": 41, "completion_tokens": 15, "cached_tokens": 7}, Usage(41, 15, cache_read_tokens=7)),
        ({"prompt_tokens": 8, "completion_tokens": 2, "reasoning_tokens": 1}, Usage(8, 2, reasoning_tokens=1)),
        # Azure has reported more cached tokens than sent ones, and the whole then bounds its parts.
        (
            {"prompt_tokens": 347, "completion_tokens": 18, "prompt_tokens_details": {"cached_tokens": 403}},
            Usage(347, 18, cache_read_tokens=347),
        ),
        ({"prompt_tokens": -1, "completion_tokens": None, "prompt_tokens_details": None}, None),
        ({"prompt_tokens": "7", "completion_tokens": True, "prompt_tokens_details": [1]}, Usage(7)),
        ({"prompt_tokens": 3.0, "completion_tokens": float("nan")}, Usage(3)),
        ({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}, Usage()),
        # Other names, and numbers as texts.
        ({"input_tokens": 1200, "output_tokens": 30}, Usage(1200, 30)),
        ({"inputTokens": 1200, "outputTokens": 30, "totalTokens": 1230}, Usage(1200, 30)),
        ({"promptTokens": "1200", "completionTokens": 30.0}, Usage(1200, 30)),
        ({"prompt_tokens": "1200", "completion_tokens": " 30 ", "total_tokens": "1230"}, Usage(1200, 30)),
        ({"prompt_tokens": 0, "input_tokens": 1200, "completion_tokens": None, "output_tokens": 30}, Usage(1200, 30)),
        (
            {
                "input_tokens": 100,
                "output_tokens": 50,
                "input_tokens_details": {"cached_tokens": "40"},
                "output_tokens_details": {"reasoning_tokens": 20},
            },
            Usage(100, 50, cache_read_tokens=40, reasoning_tokens=20),
        ),
        # The total shows what is missing.
        ({"prompt_tokens": 1200, "total_tokens": 1230}, Usage(1200, 30)),
        ({"completion_tokens": 30, "total_tokens": 1230}, Usage(1200, 30)),
        ({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 1230}, Usage(1230, estimated=True)),
        ({"total_tokens": "1230"}, Usage(1230, estimated=True)),
        ({"cost": 0.5}, Usage(stated_cost=Decimal("0.5"))),
        # Nothing can be read.
        ({}, None),
        ({"prompt_tokens": None, "completion_tokens": None, "total_tokens": None}, None),
        ({"prompt_tokens": "many", "completion_tokens": [3], "total_tokens": True}, None),
        ({"prompt_tokens": -1, "completion_tokens": "nan", "total_tokens": "inf"}, None),
        ({"tokens": 5}, None),
    ],
)
def test_read_usage__every_vendors_form__our_convention(payload: dict[str, Any], expected: Usage | None) -> None:
    assert read_usage(payload) == expected


def test_completed_usage__counts_missing__present_and_integers() -> None:
    completed = completed_usage({"prompt_tokens": 3, "completion_tokens": None, "cost": 0.5}, Usage(3))
    assert completed == {"prompt_tokens": 3, "completion_tokens": 0, "total_tokens": 3, "cost": 0.5}


def test_usage_object__read_back__the_same() -> None:
    usage = Usage(100, 50, cache_read_tokens=30, cache_write_tokens=10, reasoning_tokens=20)
    assert read_usage(usage_object(usage)) == usage
    assert usage_object(Usage(1, 2)) == {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
