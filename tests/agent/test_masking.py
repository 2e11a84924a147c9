from __future__ import annotations

import json

import pytest

from agent.turn.masking import masked_result, masked_text


def test_result__personal_data__is_masked_and_stays_json() -> None:
    given = {
        "results": [{"prompt_preview": "card 4111 1111 1111 1111, ann@example.com", "n": 4111111111111111}],
        "ann@example.com": {"ip": "1.2.3.4"},
    }
    assert json.loads(masked_result(json.dumps(given))) == {
        "results": [{"prompt_preview": "card [CARD], [EMAIL]", "n": "[CARD]"}],
        "[EMAIL]": {"ip": "[IP]"},
    }


def test_result__times_ids_and_figures__stay() -> None:
    given = {
        "created_at": "2026-11-22T17:26:02.123456+00:00",
        "day": "2026-11-22",
        "request_id": "019a8f2e-1234-7abc-8def-0123456789ab",
        "duration_ns": 4111111111111111,
        "cost_usd": 0.00123456,
        "stream": True,
        "ttft_ms": None,
    }
    assert json.loads(masked_result(json.dumps(given))) == given


@pytest.mark.parametrize("text", ['{"cut": "ann@example.com', "[" * 100_000 + "ann@example.com"])
def test_result__no_json__is_masked_as_text(text: str) -> None:
    assert masked_result(text) == text.replace("ann@example.com", "[EMAIL]")


def test_text__nothing_in_it__is_the_same() -> None:
    assert masked_text("all is well") == "all is well"
