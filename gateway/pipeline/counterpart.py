"""Finds the answer that the other arm of a request's rollout would look up in the response cache.

Both arms are compared only on requests that neither would have answered from the cache. That is known before the
request's arm matters, so that both see the same questions (docs/rollouts.md).
"""

from __future__ import annotations

from core.errors import ApplicationError
from gateway.pipeline.cached import answer_key
from gateway.pipeline.context import Attempt, RequestContext, RequestState
from gateway.pipeline.guard_input import spotlit
from gateway.pipeline.marked_documents import without_document_marks
from gateway.pipeline.permitted import permitted
from gateway.pipeline.pin import named_prompt
from gateway.pipeline.prompt import messages_of, variables_of
from gateway.pipeline.rebuild import rebuilt
from gateway.pipeline.select import select
from integrations.health.monitor import HealthMonitor
from rollouts.allocation import Variant


def counterpart_key(health: HealthMonitor, state: RequestState, asked: RequestContext, first: Attempt) -> str:
    """Returns the cache's key for the answer of the other arm; empty where the request is in no arm, or the other one
    would have refused it. `asked` is the request as the client sent it, `first` the first choice of its own arm."""
    use = state.prompt
    if not use.unit or use.fallback:
        return ""
    prompt = named_prompt(asked.snapshot.prompts, asked.request.prompt_config or asked.headers.prompt_config or "")
    if prompt is None or prompt.rollout is None:
        return ""
    rollout = prompt.rollout
    version = rollout.baseline if use.variant == Variant.TARGET else rollout.target
    try:
        other, _ = spotlit(rebuilt(asked, version, messages_of(prompt, version, variables_of(asked))))
        other = without_document_marks(other)
        if rollout.baseline.model != rollout.target.model or not _is_drawn(asked):
            first = _first_attempt(health, state, other)
    except ApplicationError:
        return ""
    return answer_key(other, state, first, version.number)


def _is_drawn(asked: RequestContext) -> bool:
    """Returns whether the order of providers is drawn for each request. Both arms have to go by the same draw then."""
    preferences = asked.request.provider
    return preferences is not None and preferences.sort is not None


def _first_attempt(health: HealthMonitor, state: RequestState, other: RequestContext) -> Attempt:
    attempts = select(other, health, state.headers.session_id or state.request_id)
    if state.key.is_restricted:
        attempts = permitted(state.key, other.request.model, attempts)
    return attempts[0]
