"""Tests streams of the Messages API that report an error, break off or are malformed."""

from __future__ import annotations

import pytest

from integrations.providers.anthropic import ADAPTER
from integrations.providers.errors import FailureKind, ProviderError
from integrations.providers.usage import Usage
from tests.integrations.anthropic_events import END, event, head, text, translator
from tests.integrations.exchanges import chat_request, credentials, run


def error(kind: str, message: str = "no luck") -> bytes:
    return event("error", error={"type": kind, "message": message})


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("overloaded_error", FailureKind.UNAVAILABLE),
        ("rate_limit_error", FailureKind.RATE_LIMITED),
        ("invalid_request_error", FailureKind.REJECTED),
        ("api_error", FailureKind.UNAVAILABLE),
        ("error_of_tomorrow", FailureKind.UNAVAILABLE),
    ],
)
def test_error__in_the_stream__of_its_type_and_what_was_used(kind: str, expected: FailureKind) -> None:
    stream = translator()
    with pytest.raises(ProviderError, match="no luck") as caught:
        run(stream, [head(), text(0, "x"), error(kind)])
    assert (caught.value.kind, caught.value.provider) == (expected, "anthropic")
    assert caught.value.usage == Usage(9, 1)


def test_error__without_a_type_around_it__is_one() -> None:
    """Proxies send errors in this form."""
    with pytest.raises(ProviderError, match="Overloaded") as caught:
        run(translator(), [head() + b'data: {"error": {"type": "overloaded_error", "message": "Overloaded"}}\n\n'])
    assert caught.value.status == 529


def test_error__first_of_all__nothing_used() -> None:
    with pytest.raises(ProviderError) as caught:
        run(translator(), [error("overloaded_error", "Overloaded")])
    assert (caught.value.message, caught.value.status, caught.value.usage) == ("Overloaded", 529, None)


def test_error__behind_good_events_in_one_piece__raised_by_the_next_call() -> None:
    stream = translator()
    assert len(stream.feed(head() + text(0, "x") + error("api_error"))) == 2
    with pytest.raises(ProviderError, match="no luck"):
        stream.feed(b"")
    with pytest.raises(ProviderError, match="no luck"):
        stream.closing()


def test_error__that_is_no_json__still_an_error() -> None:
    with pytest.raises(ProviderError, match="upstream went away") as caught:
        run(translator(), [head(), b"event: error\ndata: upstream went away\n\n"])
    assert caught.value.kind is FailureKind.UNAVAILABLE


def test_error__with_the_key_in_it__redacted() -> None:
    ADAPTER.build_request(chat_request("claude-x"), credentials("anthropic", key="a-key-of-an-odd-form"))
    with pytest.raises(ProviderError) as caught:
        run(translator(), [error("api_error", "bad a-key-of-an-odd-form")])
    assert "a-key-of-an-odd-form" not in str(caught.value)


@pytest.mark.parametrize(
    "end", [b"", event("message_delta", delta=END, usage={"output_tokens": 4}), b'event: message_stop\ndata: {"type"']
)
def test_stream__cut_off__unusable_and_what_was_used(end: bytes) -> None:
    stream = translator()
    for piece in (head(), text(0, "x"), end):
        stream.feed(piece)
    with pytest.raises(ProviderError) as caught:
        stream.closing()
    assert caught.value.kind is FailureKind.UNUSABLE
    assert caught.value.usage is not None


@pytest.mark.parametrize(
    "data",
    [b"data: not json\n\n", b"data: [1]\n\n", b'data: {"type": 5}\n\n'],
)
def test_stream__malformed_event__unusable(data: bytes) -> None:
    stream = translator()
    stream.feed(head())
    with pytest.raises(ProviderError) as caught:
        stream.feed(data)
    assert (caught.value.kind, caught.value.usage) == (FailureKind.UNUSABLE, Usage(9, 1))


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'{"type": "error", "error": {"type": "rate_limit_error", "message": "slow"}}', FailureKind.RATE_LIMITED),
        (b'{"type": "message", "content": []}', FailureKind.UNUSABLE),
        (b"<html>", FailureKind.UNUSABLE),
        (b"", FailureKind.UNUSABLE),
    ],
)
def test_stream__that_is_none__failure_of_its_body(body: bytes, kind: FailureKind) -> None:
    with pytest.raises(ProviderError) as caught:
        run(translator(), [body[:10], body[10:]])
    assert caught.value.kind is kind
