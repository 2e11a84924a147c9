"""How long to wait before the same provider is asked again, or that it is not worth it. Pure."""

from __future__ import annotations

from integrations.providers.errors import FailureKind, ProviderError

BASE_SECONDS = 0.25
MOST_SECONDS = 4.0
# What a provider asks for beyond this is a reason to ask another one.
LONGEST_RETRY_AFTER_SECONDS = 5.0


def wait_before_retry(failure: ProviderError, retries: int, draw: float) -> float | None:
    """Seconds, or None when the attempt is over. `retries` is how often this provider was asked again already, `draw`
    a number in [0, 1).

    Full jitter: anything between nothing and a ceiling that doubles, so that clients that failed together do not come
    back together (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/). A short Retry-After is
    honoured, once: a rate limit that comes again is not about to end, and who is broken gets our own wait after that,
    if it is longer.
    """
    if not failure.retryable:
        return None
    asked = failure.retry_after
    if asked is not None:
        if asked > LONGEST_RETRY_AFTER_SECONDS or (failure.kind is FailureKind.RATE_LIMITED and retries):
            return None
        if not retries:
            return asked
    ceiling = min(MOST_SECONDS, BASE_SECONDS * 2.0**retries)
    return max(draw * ceiling, asked or 0.0)
