from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from django.utils import timezone

from analytics.queries.request_filters import RequestSignal
from analytics.queries.request_sorting import RequestSort
from analytics.queries.variants import TARGET
from core.ui.pages import Visit
from core.ui.periods import CUSTOM, Period
from rollouts.comparison.quality import labels_awaited
from rollouts.evaluation import Metric, Reason
from rollouts.models import Rollout

MORE_LABELS = 20

_REQUESTS = "analytics_requests_changelist"
_FAILED: tuple[str, Mapping[str, str]] = ("Failed requests of the target", {"outcome": "error"})
_SLOWEST: tuple[str, Mapping[str, str]] = ("Slowest requests of the target", {"sort": RequestSort.SLOWEST.value})
_OF_METRICS: Mapping[str, tuple[str, Mapping[str, str]]] = MappingProxyType(
    {
        Metric.UNANSWERED: _FAILED,
        Metric.ERROR_RATE: _FAILED,
        Metric.STOPPED: ("Cancelled requests of the target", {"outcome": "cancelled"}),
        Metric.LATENCY_P95: _SLOWEST,
        Metric.LATENCY_AVERAGE: _SLOWEST,
        Metric.COST: ("Dearest requests of the target", {"sort": RequestSort.DEAREST.value}),
        Metric.CONTRACT: ("Answers of the target that broke the contract", {"signal": RequestSignal.CONTRACT.value}),
        Metric.TRUNCATED: ("Answers of the target cut at the token limit", {"signal": RequestSignal.TRUNCATED.value}),
        Metric.FALLBACK: ("Answers of the target by a fallback", {"signal": RequestSignal.FALLBACK.value}),
        Metric.EMPTY: ("Empty answers of the target", {"signal": RequestSignal.EMPTY.value}),
    }
)
"""The filters and orders of the request log that show the requests of a metric."""
_OTHERWISE: tuple[str, Mapping[str, str]] = ("Requests of the target", {})

_OF_SCORES = frozenset({Reason.QUALITY_FAILING, Reason.QUALITY_UNSCORED, Reason.QUALITY_INCONCLUSIVE})


@dataclass(frozen=True, slots=True)
class Link:
    label: str
    href: str


def links(visit: Visit, row: Rollout) -> Mapping[str, str]:
    before, after = row.baseline_version.number, row.target_version.number
    return {
        "prompt": visit.link_if_there("prompt", row.config_id),
        "baseline": visit.link_if_there("prompt", row.config_id, version=before),
        "target": visit.link_if_there("prompt", row.config_id, version=after),
        "diff": visit.link_if_there("prompt", row.config_id, version=after, against=before),
    }


def metric_link(visit: Visit, row: Rollout, metric: str) -> Link:
    label, query = _OF_METRICS.get(metric, _OTHERWISE)
    return Link(label, requests_link(visit, row, TARGET, **query))


def next_links(visit: Visit, row: Rollout, reason: str, deciding: list[str]) -> list[Link]:
    """Returns where to look after a rollback or hold whose reason rests on the `deciding` metrics."""
    if reason == Reason.WORSE_FOR_ALL:
        found = [Link("Providers", visit.link_if_there("providers")), Link("Limits", visit.link_if_there("limits"))]
    elif reason in _OF_SCORES:
        found = [Link("Evaluators and their worst pairs", "#panel-scores")]
    elif reason == Reason.SAMPLE_RATIO:
        found = [Link("Requests of the rollout", requests_link(visit, row, ""))]
    else:
        found = [metric_link(visit, row, metric) for metric in deciding] or [metric_link(visit, row, Metric.ERROR_RATE)]
    found.append(Link("What the versions differ in", links(visit, row)["diff"]))
    return [link for link in dict.fromkeys(found) if link.href]


def judge_links(visit: Visit, quality: Mapping[str, Any] | None) -> list[Link]:
    """Returns where people label the answers that a verdict waits for, or check a judge on whose scores it rests."""
    found = []
    for one in quality["evaluators"] if quality else ():
        evaluator_id, title, labels = one["evaluator_id"], one["title"], labels_awaited(one)
        if not one["decides"] or one.get("score_name"):
            continue
        if labels:
            count = min(labels, MORE_LABELS)
            href = visit.link_if_there("review_labels", evaluator_id=evaluator_id, count=count)
            found.append(Link(f"Label {count} of {labels:,} answers for {title}", href))
        elif one["label_share"] is None and one["margin_scale"] is None:
            found.append(Link(f"Calibrate {title} by labels", visit.link_if_there("evaluator", evaluator_id)))
    return [link for link in found if link.href]


def requests_link(visit: Visit, row: Rollout, arm: str, **query: Any) -> str:
    range_of = Period(CUSTOM, *row.requests_between(timezone.now())).parameters
    return visit.link_if_there(_REQUESTS, **range_of, rollout_id=row.pk, variant=arm, **query)
