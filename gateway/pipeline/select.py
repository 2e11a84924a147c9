"""Stage 7: which providers to try with which model, in order (design, section 5, Routing)."""

from __future__ import annotations

from gateway.errors import ModelNotFoundError
from gateway.pipeline.context import Attempt, RequestContext
from gateway.wire import ProviderPreferences
from integrations.registry import Candidate, adapter_for, resolve

AUTO = "auto"


def select(context: RequestContext) -> list[Attempt]:
    """The request's model first, then `models`, each by the enabled providers that serve it.

    Raises ModelNotFoundError (404) when no enabled provider serves any of them.
    """
    request = context.request
    credentials = context.snapshot.credentials
    candidates: list[Candidate] = []
    for model in (request.model, *(request.models or ())):
        if model != AUTO:
            candidates += _preferred(resolve(model, credentials.keys()), request.provider)
    if not candidates:
        raise ModelNotFoundError(_nothing_serves(request.model))
    if request.provider is not None and request.provider.allow_fallbacks is False:
        del candidates[1:]
    return [
        Attempt(
            provider=candidate.provider,
            model=candidate.upstream_model,
            credentials=credentials[candidate.provider],
            adapter=adapter_for(candidate.provider),
            is_fallback=position > 0,
        )
        for position, candidate in enumerate(candidates)
    ]


def _preferred(candidates: list[Candidate], preferences: ProviderPreferences | None) -> list[Candidate]:
    if preferences is None:
        return candidates
    only, ignore, order = preferences.only, preferences.ignore or (), preferences.order or []
    kept = [c for c in candidates if (only is None or c.provider in only) and c.provider not in ignore]
    return sorted(kept, key=lambda c: order.index(c.provider) if c.provider in order else len(order))


def _nothing_serves(model: str) -> str:
    if model == AUTO:
        return "model: auto needs preferred models, and the project has none"
    return f"model: no enabled provider of this project serves {model!r}"
