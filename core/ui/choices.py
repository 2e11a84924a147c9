from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.db.models import QuerySet
from django.http import Http404, HttpRequest

from core.models import Project
from core.rights.asking import projects_with
from core.roles import Right
from core.ui.periods import CUSTOM, Period, PeriodError, parse_period

PROJECT, RANGE, ZONE = "project", "range", "tz"

_SESSION_PROJECT, _SESSION_RANGE, _SESSION_ZONE = "pages.project", "pages.range", "pages.zone"
_ZONE_CHARACTERS = 64


def zone_of(request: HttpRequest) -> ZoneInfo:
    return _zone(str(_kept(request, _SESSION_ZONE) or "")) or ZoneInfo("UTC")


def choose_zone(request: HttpRequest, name: str) -> None:
    if _zone(name) is not None:
        request.session[_SESSION_ZONE] = name


def choose_project(
    request: HttpRequest, right: Right, named: UUID | None = None, *, is_strict: bool = True
) -> Project | None:
    """Returns the project that the path or the address names, else the session's, else the first.

    Returns None if the person has the right in no project. Raises Http404 for a named project without the right, unless
    `is_strict` is false: Django's own lists use `project` as a filter.
    """
    projects = projects_with(request.user, right)
    text = str(named or request.GET.get(PROJECT, ""))
    chosen = _project(projects, text)
    if chosen is None and text and is_strict:
        raise Http404("There is no such project.")
    chosen = chosen or _project(projects, str(_kept(request, _SESSION_PROJECT) or "")) or projects.first()
    if chosen is not None:
        _keep(request, _SESSION_PROJECT, str(chosen.pk))
    return chosen


def choose_period(request: HttpRequest, zone: ZoneInfo) -> tuple[Period, str]:
    """Returns the address's range, else the session's, and what is wrong with it or an empty text."""
    given = {name: request.GET[name] for name in ("range", "start", "end") if request.GET.get(name)}
    kept = _kept(request, _SESSION_RANGE)
    now = datetime.now(UTC)
    try:
        period = parse_period(given or (kept if isinstance(kept, dict) else {}), now, zone)
    except PeriodError as error:
        return parse_period({}, now, zone), str(error)
    if period.name != CUSTOM:
        _keep(request, _SESSION_RANGE, period.parameters)
    return period, ""


def offered_projects(request: HttpRequest, chosen: Project | None, limit: int) -> Sequence[Project]:
    found = list(projects_with(request.user, Right.READ)[:limit])
    return found if chosen is None or chosen in found else [chosen, *found]


def _kept(request: HttpRequest, key: str) -> Any:
    return request.session.get(key) if hasattr(request, "session") else None


def _keep(request: HttpRequest, key: str, value: Any) -> None:
    # An equal value is not written again: each write costs a statement.
    if _kept(request, key) != value:
        request.session[key] = value


def _project(projects: QuerySet[Project], text: str) -> Project | None:
    try:
        return projects.filter(pk=UUID(text)).first()
    except ValueError:
        return None


def _zone(name: str) -> ZoneInfo | None:
    if not name or len(name) > _ZONE_CHARACTERS:
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None
