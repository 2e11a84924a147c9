"""The figures of a session in words, each with a link to what it names."""

from __future__ import annotations

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from analytics.wire.sessions import SessionDetail
from console.requests.detail.links import Fact
from core.ui.formats import duration, moment, money, number
from core.ui.pages import Visit
from core.ui.tiles import Tile
from integrations.registry import provider_title

_LOG = "analytics_requests_changelist"


def session_tiles(found: SessionDetail) -> list[Tile]:
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


def _tokens(found: SessionDetail) -> str:
    tokens = found["tokens"]
    return f"{number(tokens['prompt_tokens'])} in, {number(tokens['completion_tokens'])} out"


def session_facts(visit: Visit, found: SessionDetail) -> list[Fact]:
    facts = [
        Fact("Session", found["session_id"]),
        Fact("First request", moment(found["started_at"])),
        Fact("Last request", moment(found["ended_at"])),
        Fact("Users", _links(visit, "user_id", found["users"])),
        Fact("Models", _links(visit, "model", found["models_used"])),
        Fact("Providers", _links(visit, "provider", found["providers_used"])),
        Fact("Operations", ", ".join(found["operations_used"])),
    ]
    return [fact for fact in facts if fact.value]


def _links(visit: Visit, parameter: str, values: list[str]) -> SafeString:
    """Returns the values, each linked to the requests that have it; providers by their names."""
    named = provider_title if parameter == "provider" else str
    linked = ((visit.link_if_there(_LOG, **{parameter: value}), named(value)) for value in values[:20])
    return format_html_join(", ", "{}", ((_link(href, value),) for href, value in linked))


def _link(href: str, value: str) -> SafeString:
    return format_html('<a href="{}">{}</a>', href, value) if href else format_html("{}", value)
