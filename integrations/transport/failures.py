"""The failures of a transport. Their texts name only the host, since a URL may carry a key in its query."""

from __future__ import annotations

from integrations.providers.errors import FailureKind, ProviderError


def refused(reason: str) -> ProviderError:
    return ProviderError(f"The upstream request was refused: {reason}", kind=FailureKind.CREDENTIALS)


def unreachable(host: str) -> ProviderError:
    return ProviderError(f"No connection to {host}", kind=FailureKind.UNAVAILABLE)


def private_network(host: str) -> ProviderError:
    return ProviderError(
        f"No connection to {host}: it leads into a private network (ALLOW_PRIVATE_UPSTREAMS permits it)",
        kind=FailureKind.UNAVAILABLE,
    )


def untrusted(host: str) -> ProviderError:
    return ProviderError(f"No secure connection to {host}: certificate not trusted", kind=FailureKind.UNAVAILABLE)


def connect_timeout(host: str, seconds: float) -> ProviderError:
    return ProviderError(f"No connection to {host} within {seconds:g} s", kind=FailureKind.TIMEOUT)


def answer_timeout(host: str, seconds: float) -> ProviderError:
    return ProviderError(f"{host} did not answer within {seconds:g} s", kind=FailureKind.TIMEOUT)


def idle_timeout(host: str, seconds: float) -> ProviderError:
    return ProviderError(f"{host} stopped sending for {seconds:g} s", kind=FailureKind.TIMEOUT)


def too_slow(host: str) -> ProviderError:
    return ProviderError(f"{host} did not finish its answer in time", kind=FailureKind.TIMEOUT)


def no_answer(host: str) -> ProviderError:
    return ProviderError(f"{host} closed the connection before it answered", kind=FailureKind.UNAVAILABLE)


def cut_short(host: str) -> ProviderError:
    return ProviderError(f"{host} broke off in the middle of its answer", kind=FailureKind.UNAVAILABLE)


def not_http(host: str) -> ProviderError:
    return ProviderError(f"{host} answered with something that is not HTTP", kind=FailureKind.UNUSABLE)


def too_large(host: str, limit: int) -> ProviderError:
    return ProviderError(f"The answer of {host} is larger than {limit} bytes", kind=FailureKind.UNUSABLE)


class UnreadableAnswerError(ProviderError):
    def __init__(self, encoding: str, reason: str) -> None:
        super().__init__(f"the provider's answer is compressed with {encoding}, {reason}", kind=FailureKind.UNUSABLE)


def unknown_compression(encoding: str) -> ProviderError:
    return UnreadableAnswerError(encoding, "which the gateway does not read")


def damaged_compression(encoding: str) -> ProviderError:
    return UnreadableAnswerError(encoding, "which is damaged")


def closed_by_caller(host: str) -> ProviderError:
    return ProviderError(f"The connection to {host} was closed here", kind=FailureKind.UNAVAILABLE)
