from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.utils.encoding import iri_to_uri

from analytics.models import ListPage, SavedView
from analytics.saved_views import delete_view, list_views, save_view, saved_query
from analytics.serializers.saved_views import NewViewSerializer
from core.errors import ApplicationError
from core.ui.pages import Visit

_SAVE, _DELETE = "save_view", "delete_view"


@dataclass(frozen=True, slots=True)
class ViewLink:
    view: SavedView
    href: str
    is_shown: bool


def view_context(visit: Visit, page: ListPage) -> Mapping[str, Any]:
    """Returns the context of `saved_views/list.html`: the person's views, and the query to save."""
    query = saved_query(visit.request.GET.urlencode())
    return {"views": _links(visit, page, query), "view_query": query}


def handle_view_form(visit: Visit, page: ListPage) -> HttpResponseBase:
    given = visit.request.POST
    try:
        if given.get("action") == _DELETE:
            delete_view(project_id=visit.project.pk, owner=visit.actor, view_id=UUID(given.get("view", "")))
            messages.success(visit.request, "The view is deleted.")
        else:
            _save(visit, page)
    except ApplicationError as error:
        messages.error(visit.request, error.message)
    except ValueError:
        messages.error(visit.request, "There is no such view.")
    return HttpResponseRedirect(iri_to_uri(f"{visit.request.path}?{visit.request.GET.urlencode()}"))


def _save(visit: Visit, page: ListPage) -> None:
    given = visit.request.POST
    body = NewViewSerializer(data={"page": page.value, "name": given.get("name", ""), "query": given.get("query", "")})
    if not body.is_valid():
        problems = ", ".join(str(problem) for found in body.errors.values() for problem in found)
        messages.error(visit.request, f"The view is not saved: {problems}")
        return
    view, made = save_view(project_id=visit.project.pk, owner=visit.actor, **body.validated_data)
    messages.success(visit.request, f"The view “{view.name}” is {'saved' if made else 'changed'}.")


def _links(visit: Visit, page: ListPage, query: str) -> Sequence[ViewLink]:
    own = list_views(visit.project.pk, visit.actor, page)
    return [
        ViewLink(view, f"{visit.request.path}?project={visit.project.pk}&{view.query}", view.query == query)
        for view in own
    ]
