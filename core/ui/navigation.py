from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlencode

from django.urls import NoReverseMatch, reverse

from core.rights.asking import may, right_of_page

# Where a group stands: in the navigation beside the page, or in the account's menu.
Place = Literal["side", "account"]


@dataclass(frozen=True, slots=True)
class Entry:
    label: str
    url_name: str
    # A symbol of `icons.svg`.
    icon: str
    # The key after `g` that opens the page.
    key: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    label: str
    entries: tuple[Entry, ...]
    # Open only on one of its own pages, so that the others fit a window of 900 px.
    is_folded: bool = False
    place: Place = "side"


GROUPS = (
    Group("", (Entry("Home", "index", "house", "h"),)),
    Group(
        "Observe",
        (
            Entry("Requests", "analytics_requests_changelist", "list", "r"),
            Entry("Sessions", "sessions", "messages-square", "s"),
            Entry("Errors", "errors", "circle-alert", "e"),
            Entry("Usage and cost", "usage", "wallet", "u"),
            Entry("Providers", "providers", "plug", "p"),
            Entry("Models", "models", "box"),
            Entry("Dashboards", "dashboards", "chart-no-axes-column", "q"),
        ),
    ),
    Group(
        "Improve",
        (
            Entry("Prompts", "prompts", "file-text", "m"),
            Entry("Playground", "gateway_playground_changelist", "play", "y"),
            Entry("Data sets", "datasets", "table-2"),
            Entry("Evaluators", "evaluators", "scale"),
            Entry("Experiments", "experiments", "flask-conical", "t"),
            Entry("Reviews", "reviews", "list-checks", "v"),
            Entry("Rollouts", "rollouts", "rocket", "o"),
        ),
    ),
    Group(
        "Control",
        (
            Entry("Alerts", "alerts", "bell", "f"),
            Entry("Online evaluations", "online_evaluations", "circle-check"),
            Entry("Limits and budgets", "limits", "gauge", "l"),
            Entry("Guardrails", "guardrails", "shield", "d"),
            Entry("API keys", "api_keys", "key-round", "i"),
            Entry("Provider keys", "provider_keys", "cable", "k"),
            Entry("Model groups", "model_groups", "boxes", "n"),
            Entry("Prices", "prices", "tag", "c"),
            Entry("Trace export", "trace_destinations", "share-2", "w"),
        ),
        is_folded=True,
    ),
    Group("", (Entry("Connect an application", "connect", "link"),)),
    Group(
        "Project",
        (
            Entry("Assignments", "assignments", "user", "j"),
            Entry("Teams", "teams", "users", "z"),
            Entry("Members", "members", "users", "b"),
            Entry("Settings", "settings", "settings", "g"),
            Entry("Audit", "audit", "history", "x"),
            Entry("All tables", "tables", "database", "a"),
        ),
        place="account",
    ),
)


@dataclass(frozen=True, slots=True)
class Link:
    label: str
    href: str
    icon: str
    key: str
    is_current: bool


@dataclass(frozen=True, slots=True)
class LinkGroup:
    label: str
    links: tuple[Link, ...]
    is_folded: bool
    place: Place

    @property
    def is_open(self) -> bool:
        return not self.is_folded or any(link.is_current for link in self.links)


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
                Link(entry.label, address, entry.icon, entry.key, entry.url_name in shown)
                for entry in group.entries
                if may(person, right_of_page(entry.url_name))
                and (address := address_if_there(entry.url_name, query=query))
            ),
            group.is_folded,
            group.place,
        )
        for group in GROUPS
    )
    return tuple(group for group in groups if group.links)
