from __future__ import annotations

from analytics.request_log.record import AttemptRecord
from gateway.errors import CredentialUnreadableError
from gateway.pipeline.context import RequestState
from gateway.protocol.wire import ChatCompletionRequest
from gateway.snapshot.project import ProjectSnapshot
from integrations.registry import Candidate, resolve


def unreadable_choice(snapshot: ProjectSnapshot, request: ChatCompletionRequest) -> Candidate | None:
    models = snapshot.models_of(request.model)
    candidates = [found for model in models for found in resolve(model, _allowed(snapshot, request), snapshot.disabled)]
    group = snapshot.groups.get(request.model)
    if group is not None and any(candidate.provider not in snapshot.unreadable for candidate in candidates):
        # The models of a group stand in for each other, so a readable one is as good a choice.
        return None
    preferences = request.provider
    for provider in (preferences.order or ()) if preferences is not None else ():
        chosen = [candidate for candidate in candidates if candidate.provider == _kind(snapshot, provider)]
        if chosen:
            candidates = chosen
            break
    first = candidates[0] if candidates else None
    return first if first is not None and first.provider in snapshot.unreadable else None


def unreadable_error(candidate: Candidate) -> CredentialUnreadableError:
    return CredentialUnreadableError(
        f"{candidate.provider}: the stored credential cannot be read with the encryption keys of this service;"
        " an operator has to enter it again or put the lost key back"
    )


def note_unreadable(state: RequestState, request: ChatCompletionRequest) -> None:
    choice = unreadable_choice(state.snapshot, request)
    if choice is not None:
        state.routing.failed += (
            AttemptRecord(
                provider=choice.provider,
                model=choice.upstream_model,
                status=0,
                error=CredentialUnreadableError.code,
                latency_ms=0,
            ),
        )


def _allowed(snapshot: ProjectSnapshot, request: ChatCompletionRequest) -> frozenset[str]:
    preferences = request.provider
    allowed = frozenset(snapshot.credentials) | snapshot.unreadable
    if preferences is None:
        return allowed
    if preferences.only is not None:
        allowed &= frozenset(_kind(snapshot, name) for name in preferences.only)
    return allowed - frozenset(preferences.ignore or ())


def _kind(snapshot: ProjectSnapshot, name: str) -> str:
    deployment = snapshot.deployments.get(name)
    return deployment.provider if deployment is not None else name
