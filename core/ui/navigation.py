from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.urls import NoReverseMatch, reverse

from core.rights.asking import may, right_of_page


@dataclass(frozen=True, slots=True)
class Entry:
    label: str
    url_name: str
    # The key after `g` that opens the page.
    key: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    label: str
    entries: tuple[Entry, ...]


GROUPS = (
    Group(
        "Observe",
        (
            Entry("Home", "index", "h"),
            Entry("Requests", "analytics_requests_changelist", "r"),
            Entry("Sessions", "sessions", "s"),
            Entry("Errors", "errors", "e"),
            Entry("Usage and cost", "usage", "u"),
            Entry("Providers", "providers", "p"),
            Entry("Models", "models"),
            Entry("Dashboards", "dashboards", "q"),
            Entry("Alerts", "alerts", "f"),
        ),
    ),
    Group(
        "Improve",
        (
            Entry("Prompts", "prompts", "m"),
            Entry("Evaluators", "evaluators"),
            Entry("Online evaluations", "online_evaluations"),
            Entry("Experiments", "experiments", "t"),
            Entry("Rollouts", "rollouts", "o"),
            Entry("Reviews", "reviews", "v"),
            Entry("Data sets", "datasets"),
            Entry("Assignments", "assignments", "j"),
            Entry("Playground", "gateway_playground_changelist", "y"),
        ),
    ),
    Group(
        "Control",
        (
            Entry("Limits and budgets", "limits", "l"),
            Entry("Guardrails", "guardrails", "d"),
            Entry("Provider keys", "provider_keys", "k"),
            Entry("Model groups", "model_groups", "n"),
            Entry("API keys", "api_keys", "i"),
            Entry("Prices", "prices", "c"),
            Entry("Trace export", "trace_destinations", "w"),
            Entry("Teams", "teams", "z"),
            Entry("Members", "members", "b"),
            Entry("Settings", "settings", "g"),
            Entry("Audit", "audit", "x"),
        ),
    ),
    Group("All tables", (Entry("All tables", "tables", "a"),)),
)


@dataclass(frozen=True, slots=True)
class Link:
    label: str
    href: str
    key: str
    is_current: bool


@dataclass(frozen=True, slots=True)
class LinkGroup:
    label: str
    links: tuple[Link, ...]


def address_of(url_name: str, *args: Any, query: Mapping[str, str | list[str]] | None = None) -> str:
    address = reverse(f"admin:{url_name}", args=args)
    return f"{address}?{urlencode(query, doseq=True)}" if query else address


def address_if_there(url_name: str, *args: Any, query: Mapping[str, str | list[str]] | None = None) -> str:
    try:
        return address_of(url_name, *args, query=query)
    except NoReverseMatch:
        return ""


def link_groups(person: Any, query: Mapping[str, str], current: Iterable[str]) -> tuple[LinkGroup, ...]:
    shown = frozenset(current)
    groups = (
        LinkGroup(
            group.label,
            tuple(
                Link(entry.label, address, entry.key, entry.url_name in shown)
                for entry in group.entries
                if may(person, right_of_page(entry.url_name))
                and (address := address_if_there(entry.url_name, query=query))
            ),
        )
        for group in GROUPS
    )
    return tuple(group for group in groups if group.links)
