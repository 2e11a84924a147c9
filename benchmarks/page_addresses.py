from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from html import unescape
from uuid import UUID

_ROW_LINK = re.compile(r'class="row-link" href="([^"]+)"')
_WHOLE_LINK = re.compile(r'href="([^"]+)">Open the ')
_REQUESTS, _SESSIONS = "analytics_requests_changelist", "sessions"
# Each list once more, with an order or a filter, by the name under which it is measured.
_LISTS = {
    "requests, slowest first": (_REQUESTS, {"sort": "-latency_ms"}),
    "requests, dearest first": (_REQUESTS, {"sort": "-cost_usd"}),
    "requests, failed": (_REQUESTS, {"outcome": "error"}),
    "requests, slow": (_REQUESTS, {"min_latency_ms": "5000"}),
    "requests, of a user": (_REQUESTS, {"user_id": "user-000001"}),
    "sessions, by cost": (_SESSIONS, {"min_cost_usd": "0.01"}),
    "sessions, by feedback": (_SESSIONS, {"feedback": "any"}),
    "sessions, of a user": (_SESSIONS, {"user_id": "user-000001"}),
}
_FORMS = ("evaluator_form", "experiment_form", "rollout_form", "prompt_new", "review_labels")
_PROMPT, _QUEUE, _EVALUATOR = "benchmark", "benchmark", "benchmark"


def prepare_records(project_id: UUID) -> None:
    from analytics.evaluators.services import NewVersion, create_evaluator
    from analytics.models import Evaluator, ReviewQueue
    from analytics.queries.request_filters import RequestFilter
    from analytics.reviews.services import NewQueue, create_queue
    from gateway.evaluations.services import NewOnlineEvaluation, create_online_evaluation
    from prompts.content.version import VersionContent
    from prompts.models import PromptConfig
    from prompts.services import add_version, create_config

    if not PromptConfig.objects.for_project(project_id).filter(name=_PROMPT).exists():
        config = create_config(project_id=project_id, name=_PROMPT)
        for text in ("Be helpful to {{ user }}.", "Be brief and helpful to {{ user }}."):
            content = VersionContent(system_prompt=text)
            add_version(project_id=project_id, config_id=config.pk, content=content, actor="benchmark")
    if not ReviewQueue.objects.for_project(project_id).filter(name=_QUEUE).exists():
        queue = NewQueue(
            name=_QUEUE, parameters={}, filters=RequestFilter(), score_name="helpful", kind="boolean", sample_size=100
        )
        create_queue(project_id=project_id, new=queue, actor="benchmark")
    if not Evaluator.objects.for_project(project_id).filter(name=_EVALUATOR).exists():
        first = NewVersion({"value": "parcel"})
        made = create_evaluator(project_id=project_id, name=_EVALUATOR, kind="contains", first=first, actor="benchmark")
        sampled = NewOnlineEvaluation(evaluator_id=made.pk, rate=0.5)
        create_online_evaluation(project_id=project_id, new=sampled, actor="benchmark")


async def page_addresses(
    opened: Callable[[str], Awaitable[str]], project: str, range_name: str
) -> AsyncIterator[tuple[str, str]]:
    from django.contrib import admin
    from django.urls import resolve

    from core.ui.navigation import GROUPS, address_if_there

    # Django's autodiscovery imports the apps' admin modules, which register their pages.
    admin.autodiscover()
    query = {"project": project, "range": range_name}
    names = [entry.url_name for group in GROUPS for entry in group.entries]
    seen = set(names)
    for page in names:
        address = address_if_there(page, query=query)
        if not address:
            continue
        yield page, address
        for link in list(_row_links(await opened(address)))[:1]:
            if link.startswith("?"):
                # The row is shown beside its list, where a link leads to its page.
                beside = address.partition("?")[0] + link
                yield f"{page}, with a row beside", beside
                link = _whole_link(await opened(beside))
            name = resolve(link.partition("?")[0]).url_name or link
            if name not in seen:
                seen.add(name)
                yield name, link
    for name, (page, chosen) in _LISTS.items():
        yield name, address_if_there(page, query={**query, **chosen})
    for page in _FORMS:
        if address := address_if_there(page, query=query):
            yield page, address
    yield "prompt_editor", address_if_there("prompt_editor", await _prompt_id(project), query=query)


def _whole_link(text: str) -> str:
    found = _WHOLE_LINK.search(text)
    if found is None:
        raise ValueError("the page shows nothing beside its list")
    return unescape(found[1])


async def _prompt_id(project: str) -> UUID:
    from prompts.models import PromptConfig

    row = await PromptConfig.objects.for_project(UUID(project)).aget(name=_PROMPT)
    return row.pk


def _row_links(text: str) -> Iterator[str]:
    for found in _ROW_LINK.finditer(text):
        yield unescape(found[1])
