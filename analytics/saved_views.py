from __future__ import annotations

from urllib.parse import parse_qsl, urlencode
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from analytics.models import ListPage, SavedView
from core.errors import NotFoundError, ValidationError

MAX_VIEWS = 100
# The parameters of an address that are no part of a view: the project, the place in the list, and one panel of a page.
_NOT_SAVED = frozenset({"project", "project_id", "cursor", "limit", "offset", "p", "panel"})


def list_views(project_id: UUID, owner: str, page: ListPage | None = None) -> QuerySet[SavedView]:
    own = SavedView.objects.for_project(project_id).filter(owner=owner)
    return own if page is None else own.filter(page=page)


def save_view(*, project_id: UUID, owner: str, page: ListPage, name: str, query: str) -> tuple[SavedView, bool]:
    """Saves a view, replacing the owner's view of the same name; True if it is new.

    Raises ValidationError when the owner has the maximum number of views of the page.
    """
    values = {"query": saved_query(query)}
    with transaction.atomic():
        view, made = SavedView.objects.update_or_create(
            project_id=project_id, owner=owner, page=page, name=name, defaults=values
        )
        if made and list_views(project_id, owner, page).count() > MAX_VIEWS:
            problem = f"There are {MAX_VIEWS} views already: delete one first."
            raise ValidationError(f"name: {problem}", details={"name": [problem]})
    return view, made


def delete_view(*, project_id: UUID, owner: str, view_id: UUID) -> None:
    deleted, _ = SavedView.objects.for_project(project_id).filter(owner=owner, pk=view_id).delete()
    if not deleted:
        raise NotFoundError("There is no such view.", code="view_not_found")


def saved_query(query: str) -> str:
    pairs = parse_qsl(query.removeprefix("?"), max_num_fields=200)
    return urlencode([(name, value) for name, value in pairs if name not in _NOT_SAVED])
