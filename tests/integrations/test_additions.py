"""Tests the parameters and headers that an integration adds to requests, in every dialect."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace as with_fields

from integrations.connectivity.exchange import HttpAnswer, Sender
from integrations.connectivity.trial import try_credentials
from integrations.providers.additions import answers_apart, forwarded, with_headers, with_parameters
from integrations.providers.base import ChatRequest, Credentials, UpstreamRequest
from integrations.registry import adapter_for, traits_of
from tests.fakes.dialects.registry import distinct_providers
from tests.integrations.adapters.subject import Subject, subject_of
from tests.tables.cases import tabled

CLIENT = [
    (b"anthropic-beta", b"context-1m-2025-08-07, skills-2025-10-02"),
    (b"x-team", b"search"),
    (b"authorization", b"Bearer canary"),
]
SENT = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}


def credentials_with(provider: str = "openai", **additions: Any) -> Credentials:
    return Credentials(1, provider, "https://upstream.test/v1", "sk-canary-4f9a1c77e2", **additions)


def changed(sent: dict[str, Any], **additions: Any) -> dict[str, Any]:
    body = with_parameters(json.dumps(sent).encode(), credentials_with(**additions))
    decoded: dict[str, Any] = json.loads(body)
    return decoded


@tabled
def test_defaults__request__get_what_it_leaves_out(
    sent: dict[str, Any], default: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert changed({**SENT, **sent}, default_parameters=default) == {**SENT, **expected}


@tabled
def test_forced__request__gets_it_in_any_case(
    sent: dict[str, Any], forced: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert changed({**SENT, **sent}, forced_parameters=forced) == {**SENT, **expected}


def test_forced__and_a_default_of_the_same__forced_counts() -> None:
    both = {"default_parameters": {"temperature": 0.2}, "forced_parameters": {"temperature": 0.9}}
    assert changed(SENT, **both)["temperature"] == 0.9


def upstream(**headers: str) -> UpstreamRequest:
    return UpstreamRequest("POST", "https://upstream.test", {"authorization": "Bearer k", **headers}, b"{}")


def test_headers__nothing_added__the_very_request() -> None:
    request = upstream()
    assert with_headers(request, credentials_with(), CLIENT) is request
    assert with_headers(request, credentials_with(forward_headers=("openai-beta",)), CLIENT) is request


def test_headers__own_and_the_clients__own_counts_and_lists_join() -> None:
    request = upstream(**{"anthropic-beta": "files-api"})
    own = {"x-team": "ops", "anthropic-beta": "skills-2025-10-02,c-3", "x-key": "secret"}
    additions = credentials_with(extra_headers=own, forward_headers=("anthropic-beta", "x-team"))
    assert with_headers(request, additions, CLIENT).headers == {
        "authorization": "Bearer k",
        "anthropic-beta": "files-api,skills-2025-10-02,c-3,context-1m-2025-08-07",
        "x-team": "ops",
        "x-key": "secret",
    }


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ([(b"x-a", b"1"), (b"x-a", b"2")], {"x-a": "1,2"}),
        ([(b"x-a", b"")], {}),
        ([(b"x-a", b"caf\xe9")], {}),
        ([(b"x-a", b"a\r\nx-b: c")], {}),
        ([(b"x-a", b"v" * 2048)], {"x-a": "v" * 2048}),
        ([(b"x-a", b"v" * 2049)], {}),
        ([(b"x-b", b"1"), (b"authorization", b"Bearer k")], {}),
    ],
)
def test_forwarded__headers_of_a_client__those_named_that_http_allows(
    raw: list[tuple[bytes, bytes]], expected: dict[str, str]
) -> None:
    assert forwarded(credentials_with(forward_headers=("x-a",)), raw) == expected


def test_traits__client_headers__go_to_who_knows_them() -> None:
    for name in ("anthropic", "azure_anthropic", "google_vertex"):
        assert traits_of(name).forward_headers == ("anthropic-beta",)
    assert traits_of("openai").forward_headers == ("openai-beta",)
    for name in ("groq", "bedrock", "cohere", "openai_compatible"):
        assert traits_of(name).forward_headers == ()


def test_answers_apart__additions__differ_from_each_other_and_from_none() -> None:
    forwarding: dict[str, Any] = {"forward_headers": ("anthropic-beta",)}
    kinds = [
        answers_apart(credentials_with(), CLIENT),
        answers_apart(credentials_with(default_parameters={"top_k": 1}), CLIENT),
        answers_apart(credentials_with(forced_parameters={"top_k": 1}), CLIENT),
        answers_apart(credentials_with(extra_headers={"top_k": "1"}), CLIENT),
        answers_apart(credentials_with(extra_headers={"top_k": "2"}), CLIENT),
        answers_apart(credentials_with(**forwarding), CLIENT),
        answers_apart(credentials_with(**forwarding), [(b"anthropic-beta", b"other")]),
    ]
    assert len(set(kinds)) == len(kinds)
    assert kinds[0] == answers_apart(credentials_with(**forwarding), []) == ()


def test_answers_apart__secret_header__only_as_a_digest() -> None:
    assert "canary" not in repr(answers_apart(credentials_with(extra_headers={"x": "canary-secret"}), []))


def built_with(subject: Subject, *, crosses_vendor: bool = False, **additions: Any) -> UpstreamRequest:
    """Returns the upstream request in the gateway's order: parameters are added before the adapter, headers after
    it."""
    own = {name: getattr(subject.credentials, name) for name in ("integration_id", "provider", "base_url", "secret")}
    credentials = Credentials(**own, extra=subject.credentials.extra, **additions)
    plain = subject.request(crosses_vendor=crosses_vendor)
    body = with_parameters(plain.body, credentials)
    names = frozenset(credentials.default_parameters) | frozenset(credentials.forced_parameters)
    request: ChatRequest = with_fields(plain, body=body, fields=json.loads(body), own_parameters=names)
    return with_headers(subject.adapter.build_request(request, credentials), credentials, CLIENT)


@pytest.mark.parametrize("provider", distinct_providers())
def test_every_dialect__parameters_and_headers__reach_the_provider_in_its_own_words(provider: str) -> None:
    subject = subject_of(provider)
    sent = built_with(
        subject,
        default_parameters={"max_tokens": 77},
        forced_parameters={"stop": ["END"]},
        extra_headers={"x-team": "ops", "x-trace": "canary-trace"},
        forward_headers=("anthropic-beta",),
    )
    request = subject.read(sent)
    assert request.max_tokens == 77
    assert request.stop == ("END",)
    assert sent.headers["x-team"] == "ops"
    assert sent.headers["anthropic-beta"].endswith("context-1m-2025-08-07,skills-2025-10-02")
    assert request.secret, "the credential is still there"
    assert "canary-trace" not in repr(sent)


@pytest.mark.parametrize("provider", distinct_providers())
def test_every_dialect__error_that_repeats_a_header__is_reported_without_it(provider: str) -> None:
    subject = subject_of(provider)
    built_with(subject, extra_headers={"x-key": "canary-header-value"})
    failure = subject.fake.failure(400, "unknown header canary-header-value")
    error = subject.adapter.classify_failure(failure.status, failure.headers, failure.body)
    assert "canary-header" not in error.message


@pytest.mark.parametrize("provider", ["groq", "mistral", "openrouter", "deepseek"])
def test_fallback__parameter_that_only_this_integration_sets__goes_out(provider: str) -> None:
    sent = built_with(subject_of(provider), crosses_vendor=True, forced_parameters={"own_switch": True})
    assert json.loads(sent.body)["own_switch"] is True
    assert not sent.warnings


class _Recorder(Sender):
    sent: list[UpstreamRequest] = []

    def send(self, request: UpstreamRequest) -> HttpAnswer:
        self.sent.append(request)
        return HttpAnswer(401, {}, b'{"error": {"message": "no canary-header-value here"}}')


def test_connection_test__integration_with_headers__sends_and_never_shows_them(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = _Recorder()
    monkeypatch.setattr(recorder.__class__, "sent", [])
    outcome = try_credentials(credentials_with(extra_headers={"x-key": "canary-header-value"}), recorder)
    (sent,) = recorder.sent
    assert sent.headers["x-key"] == "canary-header-value"
    assert "canary" not in repr(outcome)


def test_adapter__no_additions__same_bytes() -> None:
    subject = subject_of("openai")
    request = subject.request()
    assert subject.adapter.build_request(request, subject.credentials).body is request.body
    assert adapter_for("openai").traits.forward_headers
