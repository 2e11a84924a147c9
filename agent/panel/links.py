"""A text of an answer becomes a link if it is the id or name of something in the project whose page its reader may
open."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from analytics.errors import AnalyticsLimitError, AnalyticsUnavailableError
from analytics.models.reviews import ReviewQueue
from analytics.queries.lookup import known_ids
from core.lookup.registry import Kind, as_uuid
from core.models import ApiKey
from core.rights.asking import may, right_of_page
from core.roles import Right
from core.ui.navigation import address_if_there
from prompts.models import PromptConfig
from rollouts.models import Rollout

MAX_TEXTS = 200
"""The number of texts of one answer that are looked up, at most."""

_REQUESTS = "analytics_requests_changelist"


def links_of(person: Any, project_id: UUID, texts: Collection[str]) -> Mapping[str, str]:
    """Returns addresses by text. Without the store it finds no requests, sessions and users."""
    candidates = sorted(text for text in texts if text.strip())[:MAX_TEXTS]
    if not candidates or not may(person, Right.READ, project_id):
        return {}
    found: dict[str, str] = {}
    for text, url_name, args, query in (*_rows(project_id, candidates), *_ids(project_id, candidates)):
        if text in candidates and text not in found and may(person, right_of_page(url_name), project_id):
            address = address_if_there(url_name, *args, query={"project": str(project_id), **query})
            if address:
                found[text] = address
    return found


Target = tuple[str, str, tuple[Any, ...], Mapping[str, str]]
"""A text, and the URL name, arguments and query of its page."""


def _ids(project_id: UUID, texts: Collection[str]) -> Iterator[Target]:
    try:
        rows = known_ids(project_id, texts)
    except (AnalyticsUnavailableError, AnalyticsLimitError):
        return
    by_lower = {text.lower(): text for text in texts}
    for row in rows:
        if row.kind == Kind.REQUEST:
            yield by_lower.get(row.id, row.id), "analytics_requests_detail", (project_id, row.id), {}
        elif row.kind == Kind.SESSION:
            yield row.id, "session", (project_id, row.id), {}
        else:
            yield row.id, _REQUESTS, (), {"user_id": row.id}


def _rows(project_id: UUID, texts: Collection[str]) -> Iterator[Target]:
    for prompt in _named(PromptConfig.objects.filter(project_id=project_id), texts):
        yield from _each(prompt, "prompt", (prompt.pk,))
    for rollout in _named(Rollout.objects.filter(project_id=project_id).order_by("created_at"), texts):
        yield from _each(rollout, "rollouts_rollout_change", (rollout.pk,))
    for queue in _named(ReviewQueue.objects.filter(project_id=project_id), texts):
        yield from _each(queue, "review", (project_id, queue.pk))
    for key in ApiKey.objects.filter(project_id=project_id).filter(Q(name__in=texts) | Q(prefix__in=texts)):
        for text in (key.name, key.prefix):
            yield text, _REQUESTS, (), {"api_key_id": str(key.pk)}


def _named(rows: QuerySet[Any], texts: Collection[str]) -> QuerySet[Any]:
    identities = [identity for text in texts if (identity := as_uuid(text)) is not None]
    return rows.filter(Q(name__in=texts) | Q(pk__in=identities))[:MAX_TEXTS]


def _each(row: Any, url_name: str, args: tuple[Any, ...]) -> Iterator[Target]:
    for text in (str(row.pk), row.name):
        yield text, url_name, args, {}
