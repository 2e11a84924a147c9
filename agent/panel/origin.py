from __future__ import annotations

from typing import Any, TypedDict
from urllib.parse import urlsplit

from django.apps import apps
from django.contrib.admin import AdminSite
from django.db.models import Model
from django.http import Http404, HttpRequest, QueryDict
from django.urls import Resolver404, ResolverMatch, resolve

from agent.worker.limits import PAGE_CHARACTERS

_MAX_PARAMETERS = 30
_MAX_CHARACTERS = 200
# The panel is in the list too, because its own link is on its page.
_USELESS = (None, "agent_panel_changelist")


class Origin(TypedDict):
    """The page of origin: `page` and `data` as in a chat's `page_context`; `project` is the shown project's id or
    empty."""

    page: str
    data: dict[str, Any]
    project: str


def origin_of(site: AdminSite, request: HttpRequest, given: str) -> Origin | None:
    """`given` is a path of the admin with its query; other paths give None."""
    parts = _parts(given)
    match = _resolved(site, parts[0]) if parts else None
    if match is None or parts is None:
        return None
    path, query = parts
    data: dict[str, Any] = {"view": match.url_name, **match.kwargs, **_shown_record(site, request, match)}
    if query:
        data["query"] = query
    project = data.get("project_id") or query.get("project") or query.get("project__id__exact") or ""
    return {"page": path, "data": {name: _plain(value) for name, value in data.items()}, "project": str(project)}


def _parts(given: str) -> tuple[str, dict[str, str]] | None:
    if not given or len(given) > PAGE_CHARACTERS or "\0" in given:
        return None
    try:
        split = urlsplit(given)
        query = QueryDict(split.query)
    except ValueError:
        return None
    if split.scheme or split.netloc:
        return None
    return split.path, dict(list(query.dict().items())[:_MAX_PARAMETERS])


def _resolved(site: AdminSite, path: str) -> ResolverMatch | None:
    try:
        match = resolve(path)
    except Resolver404:
        return None
    return match if match.namespace == site.name and match.url_name not in _USELESS else None


def _shown_record(site: AdminSite, request: HttpRequest, match: ResolverMatch) -> dict[str, Any]:
    shown = match.kwargs.get("object_id")
    for model in apps.get_models() if shown else ():
        options = model._meta
        if match.url_name != f"{options.app_label}_{options.model_name}_change" or not site.is_registered(model):
            continue
        known = site.get_model_admin(model)
        try:
            row: Model | None = known.get_object(request, str(shown))
        except Http404:
            return {}
        if row is None or not known.has_view_permission(request, row):
            return {}
        project = getattr(row, "project_id", None)
        return {"kind": options.verbose_name, "name": str(row), **({"project_id": project} if project else {})}
    return {}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name[:_MAX_CHARACTERS]: _plain(inner) for name, inner in value.items()}
    return str(value)[:_MAX_CHARACTERS]
