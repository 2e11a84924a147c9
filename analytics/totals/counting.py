"""Adds the rows of a batch to the totals, from the columns that the store gets, so that both count the same."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from analytics.request_log.columns import Columns, values_of
from analytics.request_log.record import Outcome
from analytics.totals.figures import DURATION_MS, OVERHEAD_MS, Distribution, KeyFigures, Totals, UsageFigures
from analytics.totals.labels import MAX_CODES, MAX_PROVIDERS, OTHER, Places, UsageLabels, bounded


class _Kind(NamedTuple):
    project_id: UUID
    api_key_id: int
    provider: str
    model: str
    outcome: str
    cost_known: bool
    error_code: str
    cache_status: str
    is_stream: bool


_SUMMED = (
    "prompt_tokens", "completion_tokens", "cache_read_tokens", "cache_write_tokens", "cost_usd", "latency_ms",
    "ttft_ms",
)  # fmt: skip


class _Attempt(msgspec.Struct):
    provider: str
    status: int = 0
    error: str = ""
    latency_ms: int = 0


_decode_attempts = msgspec.json.Decoder(list[list[_Attempt]]).decode


class Counting:
    def __init__(self, totals: Totals) -> None:
        self.totals = totals
        self._usage = {UsageLabels(one.project, one.provider, one.model): one for one in totals.usage}
        self._places = Places((labels, one.used_at) for labels, one in self._usage.items())
        self._keys = {_key_labels(one.project, one.api_key): one for one in totals.keys}
        self._key_places = Places((labels, one.used_at) for labels, one in self._keys.items())
        # Many kinds of a batch have the project, model and key of others, which need not look for their place again.
        self._usage_of_batch: dict[tuple[UUID, str, str], UsageFigures] = {}
        self._keys_of_batch: dict[tuple[UUID, int], KeyFigures] = {}

    def add(self, columns: Columns) -> None:
        now = int(time.time())
        self._usage_of_batch.clear()
        self._keys_of_batch.clear()
        # A batch has few kinds of requests, so that labels are looked up for each kind and not for each row.
        places: defaultdict[tuple[Any, ...], list[int]] = defaultdict(list)
        for place, values in enumerate(zip(*_columns(columns, _Kind._fields), strict=True)):
            places[values].append(place)
        summed = _columns(columns, _SUMMED)
        calls = _calls(values_of(columns, "attempts"))
        for kind, chosen in ((_Kind(*values), found) for values, found in places.items()):
            self._add(kind, [[values[place] for place in chosen] for values in summed], now)
            if kind.outcome == Outcome.SUCCESS:
                latencies, first_outputs = summed[-2:]
                self._note_times(kind, latencies, first_outputs, calls, chosen)
        self._count_calls(calls)
        self.totals.usage = list(self._usage.values())
        self.totals.keys = list(self._keys.values())

    def _add(self, kind: _Kind, summed: Sequence[Sequence[Any]], now: int) -> None:
        prompt, completion, cache_read, cache_write, costs, latencies, _ = summed
        requests, cost_units = len(latencies), sum(map(_units, costs))
        totals = self.totals
        totals.records += requests
        figures = self._figures_of((kind.project_id, kind.provider, kind.model), now)
        figures.outcomes[kind.outcome] = figures.outcomes.get(kind.outcome, 0) + requests
        figures.prompt_tokens += sum(prompt)
        figures.completion_tokens += sum(completion)
        figures.cache_read_tokens += sum(cache_read)
        figures.cache_write_tokens += sum(cache_write)
        figures.cost_units += cost_units
        figures.unpriced += requests if kind.outcome == Outcome.SUCCESS and not kind.cost_known else 0
        figures.used_at = now
        key_figures = self._key_figures_of((kind.project_id, kind.api_key_id), now)
        key_figures.requests += requests
        key_figures.cost_units += cost_units
        key_figures.used_at = now
        totals.cache[kind.cache_status] = totals.cache.get(kind.cache_status, 0) + requests
        if kind.error_code:
            _count(totals.errors, kind.provider, kind.error_code, requests)

    def _count_calls(self, calls: Sequence[Sequence[_Attempt]]) -> None:
        found = Counter([(call.provider, call.error or "success") for of_request in calls for call in of_request])
        for (provider, result), number in found.items():
            _count(self.totals.attempts, provider, result, number)

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
        self,
        kind: _Kind,
        latencies: Sequence[int],
        first_outputs: Sequence[int],
        calls: Sequence[Sequence[_Attempt]],
        places: Sequence[int],
    ) -> None:
        """Overhead is the latency without the calls to providers; pauses between attempts count."""
        totals = self.totals
        durations = _of(totals.durations, "true" if kind.is_stream else "false")
        durations.note(DURATION_MS, [latencies[place] for place in places])
        started = [first_outputs[place] for place in places if first_outputs[place]] if kind.is_stream else []
        if started:
            name = bounded(totals.first_outputs, kind.provider, MAX_PROVIDERS)
            _of(totals.first_outputs, name).note(DURATION_MS, started)
        own = [latencies[place] - sum([call.latency_ms for call in calls[place]]) for place in places]
        totals.overhead.note(OVERHEAD_MS, [max(value, 0) for value in own])


def _key_labels(project: str, api_key: str) -> UsageLabels:
    return UsageLabels(project, OTHER if api_key == OTHER else "", api_key)


def _of(distributions: dict[str, Distribution], name: str) -> Distribution:
    found = distributions.get(name)
    if found is None:
        found = distributions[name] = Distribution.over(DURATION_MS)
    return found


def _columns(columns: Columns, names: Sequence[str]) -> list[Sequence[Any]]:
    return [values_of(columns, name) for name in names]


def _calls(attempts: Sequence[bytes]) -> Sequence[Sequence[_Attempt]]:
    return _decode_attempts(b"[" + b",".join([text or b"[]" for text in attempts]) + b"]")


def _count(counts: dict[str, dict[str, int]], provider: str, what: str, number: int) -> None:
    of_provider = counts.setdefault(bounded(counts, provider, MAX_PROVIDERS), {})
    # The result of a call is one of the gateway's own codes, of which there are some dozens.
    name = bounded(of_provider, what, MAX_CODES)
    of_provider[name] = of_provider.get(name, 0) + number


@lru_cache(maxsize=4096)
def _units(cost: str) -> int:
    return int(Decimal(cost).scaleb(10))
