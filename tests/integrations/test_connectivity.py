"""Tests every provider's cheapest call against its fake, and the failures that may occur."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import socket
import ssl
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trustme

from integrations.connectivity.calls import CALLS, build, call_of
from integrations.connectivity.exchange import Sender
from integrations.connectivity.outcomes import ConnectionOutcome, Reason
from integrations.connectivity.trial import try_credentials
from integrations.providers.base import Credentials
from integrations.registry import providers
from tests.fakes.cheap_calls import cheap_call, refuses
from tests.fakes.dialects.registry import FAKES
from tests.fakes.dialects.server import DialectServer
from tests.fakes.raw_server import answer, answering_once, raw_server
from tests.fakes.scripted import Step, garbage, hang, hang_up, raw, reset, stream
from tests.fakes.upstream import Connection, Received, UpstreamServer
from tests.integrations.adapters.newcomer import NEWCOMER, registered
from tests.tables.cases import tabled

BY_HTTP = [provider for provider in providers() if provider != "bedrock"]
SECRET = "sk-canary-4f9a1c77e2d05b"


def tried(server: DialectServer, provider: str, *steps: Step, **changes: Any) -> ConnectionOutcome:
    name = f"try-{provider}"
    server.play(name, *steps)
    return try_credentials(replace(FAKES[provider].credentials(server.base_url(name)), **changes), Sender())


@pytest.mark.parametrize("provider", BY_HTTP)
def test_key__of_the_provider__ok_with_one_call(server: DialectServer, provider: str) -> None:
    outcome = tried(server, provider, cheap_call(provider))
    assert (outcome.ok, outcome.reason, outcome.status) == (True, Reason.OK, 200), outcome
    assert outcome.detail == f"The provider let the credential {call_of(provider).description}."
    assert outcome.latency_ms is not None
    assert outcome.latency_ms > 0
    assert len(server.script(f"try-{provider}").received) == 1


@pytest.mark.parametrize("provider", BY_HTTP)
def test_key__unknown_and_echoed__invalid_and_never_shown(
    server: DialectServer, provider: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        outcome = tried(server, provider, cheap_call(provider), secret=SECRET)
    assert (outcome.ok, outcome.reason, outcome.status) == (False, Reason.INVALID_CREDENTIAL, 401), outcome
    assert "Incorrect API key provided" in outcome.detail
    for text in (outcome.detail, repr(outcome), caplog.text):
        assert "canary" not in text
        assert SECRET[-6:] not in text


def test_newcomer__row__is_tried_by_its_models(server: DialectServer) -> None:
    with registered():
        assert tried(server, NEWCOMER, cheap_call(NEWCOMER)).ok


def test_calls__none_for_a_provider_that_is_gone() -> None:
    assert not CALLS.keys() - set(providers())


@tabled
def test_azure__each_layout__the_resource_lists_its_models(base_url: str, extra: dict[str, str], called: str) -> None:
    request = build(call_of("azure_openai"), Credentials(1, "azure_openai", base_url, SECRET, extra))
    assert (request.method, request.url) == ("GET", called)


@pytest.mark.parametrize(
    ("base_url", "called"),
    [
        ("", "https://api.anthropic.com/v1/models?limit=1"),
        ("https://gateway.test/v1/messages", "https://gateway.test/v1/messages/v1/models?limit=1"),
    ],
)
def test_anthropic__address__only_its_end_is_replaced(base_url: str, called: str) -> None:
    assert build(call_of("anthropic"), Credentials(1, "anthropic", base_url, SECRET)).url == called


@pytest.mark.parametrize("provider", BY_HTTP)
@pytest.mark.parametrize(
    "path", ["", "/", "/chat/completions", "/v1/messages/", "/models", "/a/b:generateContent", "/%2F"]
)
def test_build__whatever_address__stays_on_its_host(provider: str, path: str) -> None:
    access = FAKES[provider].credentials("")
    request = build(call_of(provider), replace(access, base_url=f"https://somewhere.test{path}"))
    assert request.url.startswith("https://somewhere.test/")


def test_vertex__express_key__counts_without_a_project() -> None:
    request = build(call_of("google_vertex"), Credentials(1, "google_vertex", "", "AQ.canary"))
    where = "https://aiplatform.googleapis.com/v1/publishers/google/models/gemini-2.5-flash:countTokens"
    assert (request.method, request.url) == ("POST", where)
    assert request.headers["x-goog-api-key"] == "AQ.canary"


@tabled
def test_refusal__of_each_kind__its_reason(
    server: DialectServer, provider: str, status: int, message: str, reason: Reason
) -> None:
    outcome = tried(server, provider, refuses(provider, status, message), secret=SECRET)
    assert (outcome.ok, outcome.reason, outcome.status) == (False, reason, status), outcome
    assert "canary" not in outcome.detail
    assert "123456789" not in outcome.detail
    assert len(server.script(f"try-{provider}").received) == 1


@pytest.mark.parametrize(
    "echo",
    [
        SECRET,
        SECRET.upper(),
        SECRET[::-1],
        SECRET[:12] + "*****",
        "*****" + SECRET[-9:],
        "Basic c2stY2FuYXJ5LTRmOWExYzc3ZTJkMDVi",
        SECRET.encode().hex(),
        "".join(f"%{ord(letter):02x}" if letter == "-" else letter for letter in SECRET),
        json.dumps(SECRET).replace("c", "\\u0063"),
    ],
)
@pytest.mark.parametrize("frame", ["{}", '{{"error": {{"message": "the key {} is wrong"}}}}', "<html>{}</html>"])
def test_echo__in_any_shape__never_shown(server: DialectServer, echo: str, frame: str) -> None:
    outcome = tried(server, "openai", raw(401, frame.format(echo.strip('"')).encode()), secret=SECRET)
    assert outcome.reason is Reason.INVALID_CREDENTIAL
    words = set(re.findall(r"[\w*\\%-]{8,}", outcome.detail)) - {"provider", "credential"}
    assert not words & set(re.findall(r"[\w*\\%-]{8,}", echo))
    assert "canary" not in outcome.detail.lower()


def test_echo__of_a_short_key__nothing_is_shown(server: DialectServer) -> None:
    outcome = tried(server, "vllm", refuses("vllm", 401, "Your key {key} is unknown"), secret="abc")
    assert outcome.detail == "The provider does not accept the credential."


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (raw(200, b"<html>Welcome</html>"), Reason.UNUSABLE_ANSWER),
        (raw(200, b"{}"), Reason.UNUSABLE_ANSWER),
        (raw(200, b"[" * 100_000), Reason.UNUSABLE_ANSWER),
        (raw(200, b'"data"'), Reason.UNUSABLE_ANSWER),
        (raw(200, b'{"error": {"message": "invalid key", "code": 401}}'), Reason.INVALID_CREDENTIAL),
        (raw(204, b""), Reason.UNUSABLE_ANSWER),
        (hang_up, Reason.UNREACHABLE),
        (reset, Reason.UNREACHABLE),
        (garbage, Reason.UNREACHABLE),
        (stream(b'{"data"', end="hang_up"), Reason.UNREACHABLE),
    ],
)
def test_answer__that_is_none__reported(server: DialectServer, step: Step, reason: Reason) -> None:
    outcome = tried(server, "openai", step)
    assert (outcome.ok, outcome.reason) == (False, reason), outcome
    assert outcome.detail


def test_answer__silent__times_out(server: DialectServer) -> None:
    server.play("silent", hang)
    outcome = try_credentials(_openai(server.base_url("silent")), Sender(seconds=0.3))
    assert (outcome.reason, outcome.status) == (Reason.TIMEOUT, None)


def test_answer__dripping__ends_with_the_time(server: DialectServer) -> None:
    """Each byte arrives within the socket's own timeout."""
    server.play("drip", stream(*[piece for _ in range(200) for piece in (b" ", 0.05)]))
    outcome = try_credentials(_openai(server.base_url("drip")), Sender(seconds=0.4))
    assert outcome.reason is Reason.TIMEOUT


def test_answer__endless__is_cut(server: DialectServer) -> None:
    server.play("large", stream(*[b"x" * 65536] * 40))
    outcome = try_credentials(_openai(server.base_url("large")), Sender(max_bytes=100_000))
    assert (outcome.reason, "larger than" in outcome.detail) == (Reason.UNUSABLE_ANSWER, True)


def test_answer__compressed_beyond_measure__is_cut_as_it_unfolds(server: DialectServer) -> None:
    bomb = zlib.compress(b"x" * 50_000_000)
    server.play("bomb", raw(200, bomb, {"content-encoding": "deflate"}))
    assert len(bomb) < 100_000
    outcome = try_credentials(_openai(server.base_url("bomb")), Sender(max_bytes=100_000))
    assert outcome.reason is Reason.UNUSABLE_ANSWER


def test_redirect__to_elsewhere__not_followed(server: DialectServer) -> None:
    async def elsewhere(received: Received, connection: Connection) -> None:
        await connection.send_whole(307, b"", {"location": f"{server.url}/d/thief/models"})

    thief = server.play("thief", cheap_call("openai"))
    outcome = tried(server, "openai", elsewhere)
    assert (outcome.reason, outcome.status) == (Reason.REDIRECTED, 307)
    assert not thief.received


def test_host__unknown_or_private__nothing_is_sent() -> None:
    unknown = try_credentials(_openai("https://nobody.example/v1"), Sender(lookup=lambda host, port: []))
    assert (unknown.reason, unknown.latency_ms is not None) == (Reason.UNKNOWN_HOST, True)
    assert "nobody.example" in unknown.detail
    with UpstreamServer(_answers_nothing) as inside:
        rebinding = Sender(lookup=lambda host, port: ["127.0.0.1"])
        refused = try_credentials(_openai(f"http://public.example:{inside.port}/v1"), rebinding)
        assert refused.reason is Reason.PRIVATE_ADDRESS
        assert not inside.connections


def test_host__nobody_listens__unreachable() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        outcome = try_credentials(_openai(f"http://127.0.0.1:{taken.getsockname()[1]}/v1"), Sender())
    assert (outcome.reason, outcome.detail) == (Reason.UNREACHABLE, "127.0.0.1 refused the connection.")


async def test_tls__certificate__checked_against_the_authorities_of_the_gateway() -> None:
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    async with raw_server(answering_once(answer(b'{"data": []}')), tls=context) as server:

        async def outcome(host: str, sender: Sender) -> ConnectionOutcome:
            credentials = _openai(f"https://{host}:{server.port}/v1")
            return await asyncio.to_thread(try_credentials, credentials, sender)

        assert (await outcome("localhost", Sender(tls=trusting))).ok
        untrusted = await outcome("localhost", Sender())
        wrong_name = await outcome("127.0.0.1", Sender(tls=trusting))
    assert [untrusted.reason, wrong_name.reason] == [Reason.TLS, Reason.TLS]
    assert "not trusted" in untrusted.detail


def test_netrc__of_the_operator__does_not_replace_the_key(
    server: DialectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login someone password else\n", encoding="utf-8")
    monkeypatch.setenv("NETRC", str(netrc))
    assert tried(server, "openai", cheap_call("openai")).ok


def test_proxy__of_the_environment__is_used_and_judges_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)

    def nobody(host: str, port: int) -> list[str]:
        raise OSError(f"{host} was looked up")

    async def proxied(received: Received, connection: Connection) -> None:
        await connection.send_whole(200, b'{"data": []}')

    with UpstreamServer(proxied) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        outcome = try_credentials(_openai("http://upstream.example/v1"), Sender(lookup=nobody))
        assert outcome.ok, outcome
        (received,) = proxy.received
    assert received.path == "http://upstream.example/v1/models"


@pytest.mark.parametrize(
    ("error_type", "message", "reason"),
    [
        ("UnrecognizedClientException", "The security token included in the request is invalid.", "invalid_credential"),
        ("AccessDeniedException", "User {secret} is not authorized to perform this", "permission_denied"),
    ],
)
def test_bedrock__signed_by_boto3_and_sent_by_us__ok_or_why_not(error_type: str, message: str, reason: str) -> None:
    access = FAKES["bedrock"].credentials("")
    secret = access.extra["secret_access_key"]
    refusal = json.dumps({"message": message.format(secret=secret)}).encode()

    async def answer(received: Received, connection: Connection) -> None:
        if len(aws.received) == 1:
            await connection.send_whole(200, b'{"modelSummaries": []}', {"content-type": "application/json"})
        else:
            await connection.send_whole(403, refusal, {"x-amzn-errortype": error_type})

    with UpstreamServer(answer) as aws:
        credentials = replace(access, base_url=aws.url)
        good, bad = try_credentials(credentials, Sender()), try_credentials(credentials, Sender())
        assert "Credential=" in aws.received[0].headers["authorization"]
    assert (good.ok, good.status, good.latency_ms is not None) == (True, 200, True)
    assert (bad.ok, bad.reason.value, bad.status) == (False, reason, 403)
    assert secret not in bad.detail


@pytest.mark.parametrize("body", [b"<html>Welcome</html>", b"{}", b"[]", b"7", b'{"modelSummaries"', b"[" * 90_000])
def test_bedrock__answer_that_is_none__reported(body: bytes) -> None:
    async def welcome(received: Received, connection: Connection) -> None:
        await connection.send_whole(200, body)

    with UpstreamServer(welcome) as server:
        outcome = try_credentials(replace(FAKES["bedrock"].credentials(""), base_url=server.url), Sender())
    assert (outcome.ok, outcome.reason) == (False, Reason.UNUSABLE_ANSWER), outcome


def test_bedrock__public_name_that_leads_inside__nothing_is_sent() -> None:
    access = FAKES["bedrock"].credentials("")
    with UpstreamServer(_answers_nothing) as inside:
        credentials = replace(access, base_url=f"http://public.example:{inside.port}")
        outcome = try_credentials(credentials, Sender(lookup=lambda host, port: ["127.0.0.1"]))
        assert outcome.reason is Reason.PRIVATE_ADDRESS
        assert not inside.connections


def test_vertex__service_account_that_is_refused__invalid_without_its_key(server: DialectServer) -> None:
    account = {"type": "service_account", "client_email": "a@b", "private_key": "-----BEGIN\ncanary\n-----END",
               "token_uri": "https://oauth2.googleapis.com/token", "project_id": "p"}  # fmt: skip
    outcome = try_credentials(Credentials(1, "google_vertex", "", json.dumps(account)), Sender())
    assert (outcome.reason, outcome.latency_ms) == (Reason.INVALID_CREDENTIAL, None)
    assert "canary" not in outcome.detail


def _openai(base_url: str) -> Credentials:
    return Credentials(1, "openai", base_url, SECRET)


async def _answers_nothing(received: Received, connection: Connection) -> None:
    await connection.send_whole(200, b"{}")
