"""Computes the wait before a provider is called again. The module does no I/O."""

from __future__ import annotations

from integrations.providers.errors import FailureKind, ProviderError

BASE_SECONDS = 0.25
MAX_SECONDS = 4.0
# A provider that demands a longer wait is given up, and the next one is called.
MAX_RETRY_AFTER_SECONDS = 5.0


def wait_before_retry(failure: ProviderError, retries: int, draw: float) -> float | None:
    """Returns the wait in seconds, or None when the attempt is over. `retries` is the number of earlier retries at this
    provider, `draw` a random number in [0, 1).

    The wait has full jitter: it lies anywhere between zero and a ceiling that doubles, so that clients that failed
    together do not come back together (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/). A
    short Retry-After is honoured once: a rate limit that is hit again is not about to end. A provider that is broken
    gets the longer of its Retry-After and our own wait after that.
    """
    if not failure.retryable:
        return None
    retry_after = failure.retry_after
    if retry_after is not None:
        if retry_after > MAX_RETRY_AFTER_SECONDS or (failure.kind is FailureKind.RATE_LIMITED and retries):
            return None
        if not retries:
            return retry_after
    ceiling = min(MAX_SECONDS, BASE_SECONDS * 2.0**retries)
    return max(draw * ceiling, retry_after or 0.0)
