from __future__ import annotations

import random

import msgspec

from core.errors import ValidationError
from gateway.errors import ModelNotFoundError
from gateway.pipeline.candidates import access_of, allowed_names, by_rank, candidates_of, of_name, picked
from gateway.pipeline.context import SUBSTITUTE, Attempt, RequestContext
from gateway.pipeline.native import is_native_only
from gateway.pipeline.requirements import needs_of
from gateway.pipeline.unreadable import unreadable_choice, unreadable_error
from gateway.project_settings.settings import ProjectSettings
from gateway.protocol.wire import AUTO, ChatCompletionRequest, ProviderPreferences
from gateway.snapshot.project import ProjectSnapshot
from integrations.access.deployments import rank
from integrations.capabilities.lookup import RequestNeeds, can, max_output_of
from integrations.health.monitor import HealthMonitor
from integrations.health.order import order_by_health, order_by_latency
from integrations.health.targets import CircuitState, Target
from integrations.providers.native import native_adapter
from integrations.registry import Candidate, adapter_for, default_model, owner_of

_MAX_CACHED_MODELS = 2000
_NO_PREFERENCES = ProviderPreferences()


def select(context: RequestContext, health: HealthMonitor, key: str = "") -> list[Attempt]:
    """Returns the attempts in order.

    The request's model comes first, then `models`, each at the enabled providers that serve it, then the providers of
    `fallback_order` with a model of theirs. `auto` stands for the preferred models that can serve the request, the name
    of a model group for its models. `key` is the session or the request by which one of several deployments of a
    provider is chosen.

    Raises ModelNotFoundError (404) if no enabled provider serves any of them, and CredentialUnreadableError (500) if
    only one whose credential cannot be read does, or if no other may.
    """
    request = context.request
    is_chat = context.native is None or not is_native_only(context)
    if is_chat and request.models is None and request.provider is None:
        known: list[Attempt] | None = context.snapshot.plain_attempts.get(request.model)
        if known is not None:
            return known
        only = only_attempt(context.snapshot, request.model)
        if only is not None:
            return only
    return _Selection(context, health, key).attempts()


def only_attempt(snapshot: ProjectSnapshot, model: str) -> list[Attempt] | None:
    if model == AUTO or model in snapshot.groups or snapshot.settings.fallback_order or snapshot.unreadable:
        return None
    candidates = candidates_of(snapshot, model, snapshot.deployments.keys() or snapshot.credentials.keys())
    if len(candidates) != 1:
        return None
    # Clients choose the names, so the cache is bounded.
    if len(snapshot.plain_attempts) >= _MAX_CACHED_MODELS:
        snapshot.plain_attempts.clear()
    attempts = snapshot.plain_attempts[model] = [_attempt(snapshot, candidates[0], None)]
    return attempts


class _Selection:
    def __init__(self, context: RequestContext, health: HealthMonitor, key: str) -> None:
        self._request: ChatCompletionRequest = context.request
        self._snapshot: ProjectSnapshot = context.snapshot
        self._settings: ProjectSettings = context.snapshot.settings
        self._preferences: ProviderPreferences = context.request.provider or _NO_PREFERENCES
        self._health = health
        self._session_id = context.headers.session_id
        self._key = key
        # The client protocol that a provider has to speak itself; empty where chat completions will do.
        native = context.native
        self._operation = native.surface.operation if native is not None and native.surface.native_only else ""
        preferences = self._preferences
        only, ignore = preferences.only, preferences.ignore or ()
        self._allowed = allowed_names(context.snapshot, only, ignore)
        self._fallbacks = self._settings.fallback_enabled and preferences.allow_fallbacks is not False

    def attempts(self) -> list[Attempt]:
        unreadable = unreadable_choice(self._snapshot, self._request) if self._snapshot.unreadable else None
        if unreadable is not None and not self._fallbacks:
            raise unreadable_error(unreadable)
        primary = self._serving(self._request.model)
        others = [candidates for model in self._request.models or () for candidates in self._serving(model)]
        entries = _entries([*primary, *others])
        if not entries and unreadable is None:
            raise ModelNotFoundError(self._nothing_serves())
        if self._fallbacks and not self._operation:
            for substitute in self._substitutes(list(entries)):
                entries.setdefault(substitute, SUBSTITUTE)
        if not entries and unreadable is not None:
            raise unreadable_error(unreadable)
        first = unreadable or next(iter(entries))
        attempts = [_attempt(self._snapshot, candidate, first, entry) for candidate, entry in entries.items()]
        if not any(primary):
            attempts = [msgspec.structs.replace(attempt, stands_in=True) for attempt in attempts]
        return attempts

    def _serving(self, requested: str) -> list[list[Candidate]]:
        if requested == AUTO:
            models = self._preferred()
        elif requested in self._snapshot.groups:
            models = self._members(requested)
        else:
            models = [requested]
        return [self._in_order(self._resolved(model)) for model in models]

    def _resolved(self, model: str) -> list[Candidate]:
        candidates = candidates_of(self._snapshot, model, self._allowed)
        if not self._operation:
            return candidates
        return [candidate for candidate in candidates if self._has_operation(candidate)]

    def _has_operation(self, candidate: Candidate) -> bool:
        adapter = native_adapter(candidate.provider, self._operation)
        return adapter is not None and adapter.serves(candidate.upstream_model)

    def _preferred(self) -> list[str]:
        needs = needs_of(self._request)
        able = [model for model in self._snapshot.models_of(AUTO, self._session_id) if self._able(model, needs)]
        able.sort(key=lambda model: not self._answers(model))
        return able if self._fallbacks else able[:1]

    def _members(self, group: str) -> list[str]:
        if self._operation:
            raise ValidationError(
                f"model: the model group {group!r} stands for chat models; name a model for {self._operation}",
                code="unsupported_parameter",
            )
        needs = needs_of(self._request)
        served = [model for model in self._snapshot.models_of(group, self._session_id) if self._resolved(model)]
        served.sort(key=lambda model: not self._able(model, needs))
        return served if self._fallbacks else served[:1]

    def _able(self, model: str, needs: RequestNeeds) -> bool:
        return any(can(c.provider, c.upstream_model, needs) for c in self._resolved(model))

    def _answers(self, model: str) -> bool:
        targets = [self._target(candidate) for candidate in self._resolved(model)]
        return any(self._health.health_of(target).circuit is not CircuitState.OPEN for target in targets)

    def _in_order(self, candidates: list[Candidate]) -> list[Candidate]:
        candidates = self._spread(candidates)
        preferred = picked(candidates, self._preferences.order or ())
        rest = [candidate for candidate in candidates if candidate not in preferred]
        if self._preferences.sort == "latency":
            rest = self._sorted_by_latency(rest)
        elif len(rest) > 1:
            rest = self._as_project_falls_back(rest, first_is_chosen=bool(preferred))
        if self._snapshot.deployments:
            preferred, rest = sorted(preferred, key=self._is_used_up), sorted(rest, key=self._is_used_up)
        if not self._fallbacks:
            # `order` with `allow_fallbacks` false names all that may answer; without `order` that is the first choice.
            return preferred or rest[:1]
        return preferred + rest

    def _spread(self, candidates: list[Candidate]) -> list[Candidate]:
        """Orders each provider's deployments for this request.

        Those that take no request at present come last, so that a deployment's keys return to it when it is well again.
        """
        if len(candidates) < 2 or not self._snapshot.deployments:
            return candidates
        groups: dict[str, list[Candidate]] = {}
        for candidate in by_rank(self._snapshot, candidates, self._key):
            groups.setdefault(candidate.provider, []).append(candidate)
        return [one for group in groups.values() for one in sorted(group, key=self._is_away)]

    def _is_away(self, candidate: Candidate) -> bool:
        is_open = self._health.health_of(self._target(candidate)).circuit is CircuitState.OPEN
        return is_open or self._is_used_up(candidate)

    def _is_used_up(self, candidate: Candidate) -> bool:
        found = self._snapshot.deployments[candidate.deployment]
        number = found.credentials.integration_id
        return found.is_limited and self._health.use.is_used_up(number, rpm=found.rpm, tpm=found.tpm)

    def _as_project_falls_back(self, candidates: list[Candidate], *, first_is_chosen: bool) -> list[Candidate]:
        healthy = self._sorted_by_health(candidates)
        listed = picked(healthy, self._settings.fallback_order)
        others = [candidate for candidate in healthy if candidate not in listed]
        if first_is_chosen or not others or candidates[0] in listed:
            return listed + others
        chosen = [candidate for candidate in others if candidate.provider == others[0].provider]
        return chosen + listed + others[len(chosen) :]

    def _substitutes(self, chosen: list[Candidate]) -> list[Candidate]:
        taken = {candidate.deployment or candidate.provider for candidate in chosen}
        needs = needs_of(self._request) if self._settings.fallback_order else RequestNeeds()
        offers = (
            self._offer(provider, deployment, needs)
            for name in self._settings.fallback_order
            for provider, deployment in self._places_of(name)
            if (deployment or provider) not in taken
        )
        return [offer for offer in offers if offer is not None]

    def _places_of(self, name: str) -> list[tuple[str, str]]:
        if not self._snapshot.deployments:
            return [(name, "")] if name in self._allowed else []
        found = of_name(self._snapshot, name, self._allowed)
        return [(one.provider, one.name) for one in sorted(found, key=lambda one: rank(one, self._key))]

    def _offer(self, provider: str, deployment: str, needs: RequestNeeds) -> Candidate | None:
        own = [model.rpartition("/")[2] for model in self._snapshot.models_of(self._request.model, self._session_id)]
        names = [*own, *self._snapshot.models_of(AUTO, self._session_id)]
        places = (deployment or provider,)
        offers = [candidate for model in names for candidate in candidates_of(self._snapshot, model, places)]
        default = default_model(provider)
        if default and (not deployment or self._snapshot.deployments[deployment].serves(default)):
            offers.append(Candidate(provider, default, deployment))
        return next((offer for offer in offers if can(offer.provider, offer.upstream_model, needs)), None)

    def _sorted_by_latency(self, candidates: list[Candidate]) -> list[Candidate]:
        by_target = {self._target(candidate): candidate for candidate in candidates}
        # Ruff wants a cryptographic generator: this draw decides which provider is measured and protects no secret.
        draw = random.random()  # noqa: S311
        return [by_target[target] for target in order_by_latency(list(by_target), self._health.health_of, draw)]

    def _sorted_by_health(self, candidates: list[Candidate]) -> list[Candidate]:
        groups: dict[str, list[Candidate]] = {}
        for candidate in candidates:
            groups.setdefault(candidate.provider, []).append(candidate)
        by_target = {self._target(group[0]): group for group in groups.values()}
        return [one for target in order_by_health(list(by_target), self._health.health_of) for one in by_target[target]]

    def _target(self, candidate: Candidate) -> Target:
        integration = access_of(self._snapshot, candidate).integration_id
        return Target(integration, candidate.provider, candidate.upstream_model)

    def _nothing_serves(self) -> str:
        if self._request.model in self._snapshot.groups:
            return f"model: no enabled provider of this project serves a model of the group {self._request.model!r}"
        if self._request.model != AUTO:
            return f"model: {self._unserved()}"
        if not self._settings.preferred_models:
            return "model: auto needs preferred models, and the project has none"
        return "model: none of the project's preferred models is enabled and can do what this request needs"

    def _unserved(self) -> str:
        model, snapshot = self._request.model, self._snapshot
        if self._operation and (serving := candidates_of(snapshot, model, self._allowed)):
            names = ", ".join(dict.fromkeys(candidate.provider for candidate in serving))
            return f"the gateway has no {self._operation} of the providers that serve {model!r} ({names})"
        owner = owner_of(model)
        if not owner or model == f"{owner}/":
            return f"no enabled provider of this project serves {model!r}"
        alone = f"{model!r} is for {owner} alone"
        if owner in snapshot.credentials:
            return f"{alone}, which the request's provider object leaves out"
        if owner in snapshot.disabled:
            return f"{alone}, and this project's integration {owner!r} is disabled"
        return f"{alone}, and this project has no integration {owner!r}"


def _entries(models: list[list[Candidate]]) -> dict[Candidate, int]:
    entries: dict[Candidate, int] = {}
    for number, candidates in enumerate(models):
        for candidate in candidates:
            entries.setdefault(candidate, number)
    return entries


def _attempt(snapshot: ProjectSnapshot, candidate: Candidate, first: Candidate | None, entry: int = 0) -> Attempt:
    credentials, adapter = access_of(snapshot, candidate), adapter_for(candidate.provider)
    deployment = snapshot.deployments.get(candidate.deployment) if candidate.deployment else None
    needs_max_output = adapter.traits.needs_max_output
    return Attempt(
        provider=candidate.provider,
        model=candidate.upstream_model,
        credentials=credentials,
        adapter=adapter,
        target=Target(credentials.integration_id, candidate.provider, candidate.upstream_model),
        is_fallback=first is not None and candidate != first,
        is_other=first is not None
        and (candidate.provider, candidate.upstream_model) != (first.provider, first.upstream_model),
        crosses_vendor=first is not None and candidate.provider != first.provider,
        entry=entry,
        max_output=max_output_of(candidate.provider, candidate.upstream_model) if needs_max_output else None,
        deployment=candidate.deployment,
        is_limited=deployment is not None and deployment.is_limited,
        sent_model=deployment.models.get(candidate.upstream_model, "") if deployment is not None else "",
        own_prices=deployment.prices or None if deployment is not None else None,
    )
