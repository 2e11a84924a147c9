"""Finds pages, actions and the project's objects for the letters that were typed into the palette."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Model

from analytics.models import Dataset, Evaluator
from core.errors import ApplicationError
from core.ui.frame import frame_of
from core.ui.navigation import Entry
from core.ui.pages import Visit
from prompts.models import PromptConfig
from rollouts.models import Rollout

_LIMIT = 5
# What has a name, with its icon, its page, and whether the path of the page begins with the project.
_NAMED: Sequence[tuple[type[Model], str, str, str, bool]] = (
    (PromptConfig, "prompt", "file-text", "prompt", False),
    (Evaluator, "evaluator", "scale", "evaluator", False),
    (Dataset, "data set", "table-2", "dataset", True),
    (Rollout, "rollout", "rocket", "rollouts_rollout_change", False),
)
_ACTIONS = (
    Entry("New prompt", "prompt_new", "plus"),
    Entry("New rollout", "rollout_form", "rocket"),
    Entry("New experiment", "experiment_form", "flask-conical"),
    Entry("New evaluator", "evaluator_form", "scale"),
    Entry("New alert", "alert_form", "bell"),
    Entry("New API key", "api_keys", "key-round"),
    Entry("Ask the agent", "agent_panel_changelist", "sparkles"),
)


@dataclass(frozen=True, slots=True)
class Found:
    label: str
    href: str
    icon: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class FoundGroup:
    label: str
    links: Sequence[Found]


def palette(visit: Visit, text: str, records: Callable[[], Sequence[Mapping[str, str]]]) -> Mapping[str, Any]:
    """`records` returns what `text` names by an id; it may raise TimeoutError and the errors of the store."""
    groups = (
        FoundGroup("By id", [*_records(records)] if text else []),
        FoundGroup("By name", [*_named(visit, text)] if text else []),
        FoundGroup("Pages", [*_pages(visit, text)]),
        FoundGroup("Do", [*_actions(visit, text)]),
    )
    everywhere = visit.link("search", q=text) if text else ""
    return {"groups": [group for group in groups if group.links], "text": text, "everywhere": everywhere}


def _records(records: Callable[[], Sequence[Mapping[str, str]]]) -> Iterator[Found]:
    try:
        found = records()
    except (TimeoutError, ApplicationError):
        return
    yield from (Found(one["label"], one["href"], "arrow-down", one["kind"]) for one in found if one["href"])


def _named(visit: Visit, text: str) -> Iterator[Found]:
    project_id = visit.project.pk
    for model, kind, icon, page, has_project in _NAMED:
        rows: Any = model._default_manager.filter(project_id=project_id, name__icontains=text).order_by("name")
        for row in rows[:_LIMIT]:
            href = visit.link_if_there(page, *([project_id] if has_project else []), row.pk)
            if href:
                yield Found(row.name, href, icon, kind)


def _pages(visit: Visit, text: str) -> Iterator[Found]:
    links = [link for group in frame_of(visit.request).groups for link in group.links]
    return (Found(one.label, one.href, one.icon) for one in links if text.lower() in one.label.lower())


def _actions(visit: Visit, text: str) -> Iterator[Found]:
    for one in _ACTIONS:
        href = visit.link_if_there(one.url_name)
        if href and text.lower() in one.label.lower():
            yield Found(one.label, href, one.icon)
