from __future__ import annotations

from gateway.pipeline.callers import caller_of, has_limits
from gateway.pipeline.context import NO_LIMITS, RequestState
from gateway.pipeline.rate_headers import uncounted_headers
from gateway.protocol import headers
from gateway.protocol.reply import HeaderList

# Proxies refuse header lines of more than some kilobytes.
_MAX_WARNING_CHARACTERS = 2000


def served_by(state: RequestState) -> HeaderList:
    routing = state.routing
    served: HeaderList = [
        (headers.PROVIDER, routing.provider.encode()),
        (headers.MODEL_USED, headers.header_value(routing.answered or routing.model)),
        (headers.RETRY_COUNT, b"%d" % routing.retries),
        (headers.CACHE, state.cache.status),
    ]
    if routing.fallback_used and state.request is not None:
        served.append((headers.ORIGINAL_MODEL, headers.header_value(state.request.model)))
        served.append((headers.FALLBACK_USED, b"true"))
    if routing.deployment:
        served.append((headers.DEPLOYMENT, routing.deployment.encode()))
    served += state.limits.headers
    served += _prompt_served(state)
    if state.answer.contract_violation:
        served.append((headers.CONTRACT_VIOLATION, b"true"))
    if routing.attempt_warnings or state.warnings or _is_unpriced(state):
        served.append(_warning(_warnings(state)))
    return served


def error_headers(state: RequestState) -> HeaderList:
    """Returns the headers of an answer that is an error with a status of its own.

    A limit's error brings the limits' headers itself, so they are added only if the request was admitted or failed
    before that.
    """
    found: HeaderList = [(headers.RETRY_COUNT, b"%d" % state.routing.retries)] if state.routing.failed else []
    if state.limits.reservation is not None:
        found += state.limits.headers
    elif state.limits is NO_LIMITS and has_limits(state):
        found += uncounted_headers(state.snapshot.limits, caller_of(state).limits, state.arrived_us)
    found += _prompt_served(state)
    if state.warnings:
        found.append(_warning("; ".join(state.warnings)))
    return found


def _prompt_served(state: RequestState) -> HeaderList:
    """Failures have these headers too: a failure may be the target version's fault."""
    prompt = state.prompt
    if not prompt.version:
        return []
    version = (headers.PROMPT_VERSION, b"%d" % prompt.version)
    return [version, (headers.VARIANT, prompt.variant.encode())] if prompt.variant else [version]


def _warning(text: str) -> tuple[bytes, bytes]:
    return headers.WARNING, headers.header_value(text[:_MAX_WARNING_CHARACTERS])


def _is_unpriced(state: RequestState) -> bool:
    usage = state.answer.usage
    return state.routing.price is None and (usage is None or usage.stated_cost is None)


def _warnings(state: RequestState) -> str:
    warnings = [*state.warnings, *state.routing.attempt_warnings]
    if _is_unpriced(state):
        warnings.append(f"no price is known for {state.routing.model}: cost unknown")
    return "; ".join(warnings)
