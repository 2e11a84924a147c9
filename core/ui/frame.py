from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from django.http import HttpRequest
from django.utils import timezone

from core.models import Project
from core.roles import Right
from core.ui.choices import choose_period, choose_project, offered_projects, zone_of
from core.ui.navigation import LinkGroup, address_if_there, link_groups
from core.ui.periods import CUSTOM, LABELS, Period
from core.ui.tables import pairs_without

_MAX_PROJECTS = 500
_ATTRIBUTE = "_frame"
_OF_A_RANGE = ("range", "start", "end", "tz", "cursor", "p", "panel", "peek")
_SCHEMES = ("light", "dark")
# Parameters of an address that stay when project, range or time zone change: those that choose how rows are shown.
_LASTING = ("sort", "columns", "operation", "outcome", "provider", "model", "group_by")


@dataclass(frozen=True, slots=True)
class Frame:
    project: Project | None
    projects: Sequence[Project]
    period: Period
    # The page shows figures of the range.
    has_range: bool
    # The error of the range in the address; empty if there is none.
    period_problem: str
    zone: ZoneInfo
    groups: Sequence[LinkGroup]
    parameters: Mapping[str, str]
    # The page that the form of project and range leads to, and the further parameters that it keeps.
    scope_address: str
    scope_parameters: Mapping[str, str]
    # What an address keeps when its range changes: all but the place in a list.
    range_parameters: Sequence[tuple[str, str]]
    search_address: str
    home_address: str
    # `light` or `dark`; empty for that of the system.
    scheme: str
    # The navigation shows icons alone.
    is_folded: bool

    @property
    def period_label(self) -> str:
        if self.period.name != CUSTOM:
            return self.period.label
        start, end = (timezone.localtime(one) for one in (self.period.start, self.period.end))
        last = f"{end:%H:%M}" if start.date() == end.date() else f"{end.day} {end:%b %H:%M}"
        return f"{start.day} {start:%b %H:%M} to {last}"

    @property
    def ranges(self) -> Mapping[str, str]:
        return LABELS


def frame_of(request: HttpRequest) -> Frame:
    known: Frame | None = getattr(request, _ATTRIBUTE, None)
    if known is not None:
        return known
    project = choose_project(request, Right.READ, is_strict=False)
    period, problem = choose_period(request, zone_of(request))
    return make_frame(request, project, period, problem, has_range=False)


def make_frame(
    request: HttpRequest,
    project: Project | None,
    period: Period,
    problem: str = "",
    *,
    parent: str = "",
    has_range: bool,
) -> Frame:
    named = request.resolver_match.url_name if request.resolver_match else ""
    parameters = {**({"project": str(project.pk)} if project else {}), **period.parameters}
    home = address_if_there("index")
    frame = Frame(
        project=project,
        projects=offered_projects(request, project, _MAX_PROJECTS),
        period=period,
        has_range=has_range,
        period_problem=problem,
        zone=zone_of(request),
        groups=link_groups(request.user, parameters, [name for name in (named, parent) if name]),
        parameters=parameters,
        scope_address=(address_if_there(parent) if parent else _own_address(request)) or home,
        scope_parameters={name: request.GET[name] for name in _LASTING if request.GET.get(name)} if not parent else {},
        range_parameters=_range_parameters(request, project, has_own_address=not parent),
        search_address=address_if_there("search"),
        home_address=address_if_there("index", query=parameters),
        scheme=next((scheme for scheme in _SCHEMES if request.COOKIES.get("scheme") == scheme), ""),
        is_folded=request.COOKIES.get("side") == "rail",
    )
    setattr(request, _ATTRIBUTE, frame)
    return frame


def _range_parameters(
    request: HttpRequest, project: Project | None, *, has_own_address: bool
) -> Sequence[tuple[str, str]]:
    kept = [*pairs_without(request.GET, ("project", *_OF_A_RANGE))] if has_own_address else []
    return [("project", str(project.pk)), *kept] if project else kept


def _own_address(request: HttpRequest) -> str:
    match = request.resolver_match
    return "" if match is None or match.kwargs else request.path
