"""Adds the rows of a batch to the totals; it takes rows, as the store does, so that both count the same."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import lru_cache
from operator import itemgetter
from typing import Any
from uuid import UUID

import msgspec

from analytics.request_log.columns import INGESTED
from analytics.request_log.record import Outcome
from analytics.totals.figures import DURATION_MS, OVERHEAD_MS, Distribution, KeyFigures, Totals, UsageFigures
from analytics.totals.labels import MAX_CODES, MAX_PROVIDERS, OTHER, Places, UsageLabels, bounded

_read = itemgetter(
    *(
        INGESTED.index(name)
        for name in (
            "project_id", "outcome", "provider", "model", "prompt_tokens", "completion_tokens", "cache_read_tokens",
            "cache_write_tokens", "cost_usd", "cost_known", "error_code", "cache_status", "latency_ms", "ttft_ms",
            "is_stream", "attempts", "api_key_id",
        )
    )
)  # fmt: skip


class _Attempt(msgspec.Struct):
    """The counted fields of a call to a provider."""

    provider: str
    status: int = 0
    error: str = ""
    latency_ms: int = 0


_attempts = msgspec.json.Decoder(list[_Attempt])


class Counting:
    """Adds rows to `totals`, which it changes in place."""

    def __init__(self, totals: Totals) -> None:
        self.totals = totals
        self._usage = {UsageLabels(one.project, one.provider, one.model): one for one in totals.usage}
        self._places = Places((labels, one.used_at) for labels, one in self._usage.items())
        self._keys = {_key_labels(one.project, one.api_key): one for one in totals.keys}
        self._key_places = Places((labels, one.used_at) for labels, one in self._keys.items())
        # Most rows of a batch have the project, model and key of others, which need not look for their place again.
        self._usage_of_batch: dict[tuple[UUID, str, str], UsageFigures] = {}
        self._keys_of_batch: dict[tuple[UUID, int], KeyFigures] = {}

    def add(self, rows: Iterable[Sequence[Any]]) -> None:
        now = int(time.time())
        self._usage_of_batch.clear()
        self._keys_of_batch.clear()
        for row in rows:
            self._add(row, now)
        self.totals.usage = list(self._usage.values())
        self.totals.keys = list(self._keys.values())

    def _add(self, row: Sequence[Any], now: int) -> None:
        (
            project, outcome, provider, model, prompt, completion, cache_read, cache_write, cost, cost_known, error,
            cache, latency_ms, ttft_ms, is_stream, attempts, api_key,
        ) = _read(row)  # fmt: skip
        totals = self.totals
        totals.records += 1
        figures = self._figures_of((project, provider, model), now)
        figures.outcomes[outcome] = figures.outcomes.get(outcome, 0) + 1
        figures.prompt_tokens += prompt
        figures.completion_tokens += completion
        figures.cache_read_tokens += cache_read
        figures.cache_write_tokens += cache_write
        figures.cost_units += _units(cost)
        figures.unpriced += outcome == Outcome.SUCCESS and not cost_known
        figures.used_at = now
        key_figures = self._key_figures_of((project, api_key), now)
        key_figures.requests += 1
        key_figures.cost_units += _units(cost)
        key_figures.used_at = now
        totals.cache[cache] = totals.cache.get(cache, 0) + 1
        if error:
            _count(totals.errors, provider, error)
        calls = _attempts.decode(attempts) if attempts else []
        for call in calls:
            _count(totals.attempts, call.provider, call.error or "success")
        if outcome == Outcome.SUCCESS:
            self._note_times(provider, is_stream, latency_ms, ttft_ms, calls)

    def _figures_of(self, requested: tuple[UUID, str, str], now: int) -> UsageFigures:
        figures = self._usage_of_batch.get(requested)
        if figures is None:
            labels, given_up = self._places.place_of(UsageLabels(str(requested[0]), *requested[1:]), now)
            if given_up is not None:
                del self._usage[given_up]
                self._usage_of_batch.clear()
            figures = self._usage.get(labels)
            if figures is None:
                figures = self._usage[labels] = UsageFigures(*labels)
            self._usage_of_batch[requested] = figures
        return figures

    def _key_figures_of(self, requested: tuple[UUID, int], now: int) -> KeyFigures:
        figures = self._keys_of_batch.get(requested)
        if figures is None:
            labels, given_up = self._key_places.place_of(_key_labels(str(requested[0]), str(requested[1])), now)
            if given_up is not None:
                del self._keys[given_up]
                self._keys_of_batch.clear()
            figures = self._keys.get(labels)
            if figures is None:
                figures = self._keys[labels] = KeyFigures(labels.project, labels.model)
            self._keys_of_batch[requested] = figures
        return figures

    def _note_times(
        self, provider: str, is_stream: bool, latency_ms: int, ttft_ms: int, calls: Sequence[_Attempt]
    ) -> None:
        """Notes the times of a request. Its `latency_ms` without the time of the providers is the gateway's own, with
        the pauses between attempts."""
        totals = self.totals
        _of(totals.durations, "true" if is_stream else "false").note(DURATION_MS, latency_ms)
        if is_stream and ttft_ms:
            name = bounded(totals.first_outputs, provider, MAX_PROVIDERS)
            _of(totals.first_outputs, name).note(DURATION_MS, ttft_ms)
        totals.overhead.note(OVERHEAD_MS, max(latency_ms - sum(call.latency_ms for call in calls), 0))


def _key_labels(project: str, api_key: str) -> UsageLabels:
    """Returns the labels of a key's series, whose number is bounded as that of models is."""
    return UsageLabels(project, OTHER if api_key == OTHER else "", api_key)


def _of(distributions: dict[str, Distribution], name: str) -> Distribution:
    found = distributions.get(name)
    if found is None:
        found = distributions[name] = Distribution.over(DURATION_MS)
    return found


def _count(counts: dict[str, dict[str, int]], provider: str, what: str) -> None:
    of_provider = counts.setdefault(bounded(counts, provider, MAX_PROVIDERS), {})
    # The result of a call is one of the gateway's own codes, of which there are some dozens.
    name = bounded(of_provider, what, MAX_CODES)
    of_provider[name] = of_provider.get(name, 0) + 1


@lru_cache(maxsize=4096)
def _units(cost: str) -> int:
    return int(Decimal(cost).scaleb(10))
