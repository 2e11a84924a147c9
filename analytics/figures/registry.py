from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class FigureUnit(StrEnum):
    COUNT = "count"
    USD = "usd"
    MILLISECONDS = "ms"
    SHARE = "share"
    TOKENS = "tokens"
    SCORE = "score"


class FigureSource(StrEnum):
    REQUESTS = "requests"
    SCORES = "scores"


@dataclass(frozen=True, slots=True)
class Figure:
    """`is_sum`: parts add up to the whole, and nothing to measure means 0."""

    name: str
    label: str
    unit: FigureUnit
    is_sum: bool = False
    source: FigureSource = FigureSource.REQUESTS


def _sums(unit: FigureUnit, labels: Mapping[str, str]) -> list[Figure]:
    return [Figure(name, label, unit, is_sum=True) for name, label in labels.items()]


_ALL = (
    *_sums(
        FigureUnit.COUNT,
        {
            "request_count": "Requests",
            "error_count": "Failed requests",
            "cancelled_count": "Cancelled requests",
            "unpriced_request_count": "Requests without a known price",
        },
    ),
    Figure("error_rate", "Share of requests that failed", FigureUnit.SHARE),
    *_sums(FigureUnit.USD, {"total_cost_usd": "Cost"}),
    Figure("average_cost_usd", "Cost of a request on average", FigureUnit.USD),
    *_sums(
        FigureUnit.TOKENS,
        {
            "total_tokens": "Tokens",
            "prompt_tokens": "Input tokens",
            "completion_tokens": "Output tokens",
            "cache_read_tokens": "Tokens read from the prompt cache",
            "cache_write_tokens": "Tokens written to the prompt cache",
        },
    ),
    Figure("average_latency_ms", "Latency on average", FigureUnit.MILLISECONDS),
    Figure("p50_latency_ms", "Latency, half are faster (p50)", FigureUnit.MILLISECONDS),
    Figure("p95_latency_ms", "Latency, 95 % are faster (p95)", FigureUnit.MILLISECONDS),
    Figure("p99_latency_ms", "Latency, 99 % are faster (p99)", FigureUnit.MILLISECONDS),
    Figure("p50_ttft_ms", "Time to the first token, half are faster (p50)", FigureUnit.MILLISECONDS),
    Figure("p95_ttft_ms", "Time to the first token, 95 % are faster (p95)", FigureUnit.MILLISECONDS),
    Figure("p99_ttft_ms", "Time to the first token, 99 % are faster (p99)", FigureUnit.MILLISECONDS),
    Figure("mean_score", "Score on average", FigureUnit.SCORE, source=FigureSource.SCORES),
    Figure("score_count", "Scores", FigureUnit.COUNT, is_sum=True, source=FigureSource.SCORES),
)
FIGURES: Mapping[str, Figure] = {figure.name: figure for figure in _ALL}
