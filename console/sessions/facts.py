from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from console.requests.detail.links import Fact
from core.ui.formats import duration, moment, money, number
from core.ui.pages import Visit
from core.ui.tiles import Tile
from integrations.registry import provider_title

_LOG = "analytics_requests_changelist"
_MAX_NAMES = 20


def session_tiles(found: Mapping[str, Any]) -> list[Tile]:
    errors, unpriced, score = found["error_count"], found["unpriced_request_count"], found["feedback_score"]
    average = duration(found["average_latency_ms"])
    return [
        Tile("Requests", number(found["request_count"]), note=f"{average} on average"),
        Tile("Errors", number(errors), note=f"{found['cancelled_count']} cancelled", kind="bad" if errors else "good"),
        Tile("Cost", money(found["total_cost_usd"]), note=f"without {unpriced} unpriced" if unpriced else ""),
        Tile("Tokens", number(found["total_tokens"]), note=_tokens(found)),
        Tile("Lasted", duration(found["duration_seconds"] * 1000)),
        Tile("Feedback", "none" if score is None else f"{score:.1f} of 5"),
    ]


def _tokens(found: Mapping[str, Any]) -> str:
    tokens = found["tokens"]
    return f"{number(tokens['prompt_tokens'])} in, {number(tokens['completion_tokens'])} out"


def session_facts(visit: Visit, found: Mapping[str, Any]) -> list[Fact]:
    facts = [
        Fact("Session", found["session_id"]),
        Fact("First request", moment(found["started_at"])),
        Fact("Last request", moment(found["ended_at"])),
        Fact("Users", _users(visit, found["users"])),
        Fact("Models", _links(visit, "model", found["models_used"])),
        Fact("Providers", _links(visit, "provider", found["providers_used"])),
        Fact("Operations", ", ".join(found["operations_used"])),
    ]
    return [fact for fact in facts if fact.value]


def _users(visit: Visit, users: list[str]) -> SafeString:
    linked = (visit.linked(user, "user", visit.project.pk, user) for user in users[:_MAX_NAMES])
    return format_html_join(", ", "{}", ((one,) for one in linked))


def _links(visit: Visit, parameter: str, values: list[str]) -> SafeString:
    named = provider_title if parameter == "provider" else str
    linked = (visit.linked(named(value), _LOG, **{parameter: value}) for value in values[:_MAX_NAMES])
    return format_html_join(", ", "{}", ((one,) for one in linked))
