from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Q
from django.utils import timezone

from analytics.errors import AnalyticsUnavailableError
from analytics.queries.requests import OwnRequestRow, latest_own_request
from analytics.request_log.record import Outcome
from console.connect.models import enabled_providers
from core.models import ApiKey
from core.rights.scopes import GATEWAY
from core.ui.pages import Visit
from integrations.registry import provider_title
from integrations.selectors import SANDBOX

_MAX_NAMES = 3
_MAX_KEYS = 500
_REQUEST = "First request"


@dataclass(frozen=True, slots=True)
class Step:
    title: str
    is_done: bool
    text: str
    href: str = ""
    label: str = ""
    has_failed: bool = False


def waiting_steps(visit: Visit, key: ApiKey | None) -> dict[str, Any]:
    return _steps(visit, key, _request_step(visit, None))


def looked_up_steps(visit: Visit, key: ApiKey | None) -> dict[str, Any]:
    """Reads the latest request, of `key` if given. If the store does not answer, the last step says so."""
    try:
        found = (
            latest_own_request(visit.project.pk)
            if key is None
            else latest_own_request(visit.project.pk, api_key_id=key.pk, since=key.created_at)
        )
    except AnalyticsUnavailableError as error:
        return _steps(visit, key, Step(_REQUEST, False, error.message))
    return _steps(visit, key, _request_step(visit, found))


def _steps(visit: Visit, key: ApiKey | None, request: Step) -> dict[str, Any]:
    steps = [_provider_step(visit), _key_step(visit, key), request]
    return {"steps": steps, "is_connected": all(step.is_done for step in steps)}


def _provider_step(visit: Visit) -> Step:
    enabled = enabled_providers(visit.project.pk)
    named = sorted(provider_title(provider) for provider in enabled - {SANDBOX})
    href = visit.link_if_there("provider_keys")
    if named:
        shown = ", ".join(named[:_MAX_NAMES]) + (f" and {len(named) - _MAX_NAMES} more" if named[_MAX_NAMES:] else "")
        return Step("Provider key", True, f"There is one for {shown}.")
    add = "Add a provider key" if href else ""
    if SANDBOX in enabled:
        return Step("Provider key", True, "The sandbox answers for now, without any account.", href, add)
    text = "" if href else "Ask an administrator of the project to add a provider key."
    return Step("Provider key", False, text, href, add)


def _key_step(visit: Visit, key: ApiKey | None) -> Step:
    title = "Application key"
    if key is not None:
        return Step(title, True, f"{key.name} is made.")
    now = timezone.now()
    live = ApiKey.objects.for_project(visit.project.pk).filter(
        Q(expires_at=None) | Q(expires_at__gt=now), revoked_at=None
    )
    names = [
        name for name, scopes in live.order_by("-pk").values_list("name", "scopes")[:_MAX_KEYS] if GATEWAY in scopes
    ]
    if not names:
        return Step(title, False, "Make one below." if visit.link_if_there("api_keys") else "Ask for one as below.")
    more = f" and {len(names) - 1} more" if names[1:] else ""
    return Step(title, True, f"There is {names[0]}{more}.", visit.link_if_there("api_keys"), "API keys")


def _request_step(visit: Visit, found: OwnRequestRow | None) -> Step:
    if found is None:
        return Step(_REQUEST, False, "Waiting for the first request…")
    href = visit.link("analytics_requests_detail", visit.project.pk, found.request_id)
    if found.outcome == Outcome.SUCCESS:
        return Step(_REQUEST, True, f"{found.model or 'A model'} has answered.", href, "See the request")
    reason = found.error_code or found.outcome
    return Step(_REQUEST, False, f"The latest request failed: {reason}.", href, "See why", has_failed=True)
