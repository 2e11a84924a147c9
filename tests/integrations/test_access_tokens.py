"""Tests access tokens of service accounts against a fake token server."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import parse_qs

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from integrations.providers.base import Credentials
from integrations.providers.errors import FailureKind, ProviderError
from integrations.transport.access_tokens import SCOPE, AccessTokens, fetch_token
from tests.fakes.upstream import Connection, Received, UpstreamServer
from tests.tables.cases import tabled

EMAIL = "gateway@fake-project.iam.gserviceaccount.com"


@cache
def private_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def service_account(token_uri: str, **changes: Any) -> Credentials:
    pem = private_key().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    account = {
        "type": "service_account",
        "project_id": "fake-project",
        "private_key_id": "key-1",
        "private_key": pem.decode(),
        "client_email": EMAIL,
        "token_uri": token_uri,
        **changes,
    }
    return Credentials(7, "google_vertex", "", json.dumps(account))


@dataclass
class TokenServer:
    """A server that issues `token-1`, `token-2`… or refuses with `refusal`."""

    refusal: tuple[int, dict[str, str]] | None = None
    lifetime: dict[str, int] = field(default_factory=lambda: {"expires_in": 3600})
    raw: bytes | None = None
    url: str = ""
    requests: list[dict[str, list[str]]] = field(default_factory=list)

    async def __call__(self, request: Received, connection: Connection) -> None:
        self.requests.append(parse_qs(request.body.decode()))
        token = {"access_token": f"ya29.token-{len(self.requests)}", "token_type": "Bearer", **self.lifetime}
        status, answer = self.refusal or (200, token)
        body = self.raw if self.raw is not None else json.dumps(answer).encode()
        await connection.send_whole(status, body, {"content-type": "application/json"})


@pytest.fixture
def server() -> Iterator[TokenServer]:
    answers = TokenServer()
    with UpstreamServer(answers) as running:
        answers.url = f"{running.url}/token"
        yield answers


@dataclass
class Clock:
    now: float

    def __call__(self) -> float:
        return self.now


def decoded(segment: str) -> bytes:
    return base64.urlsafe_b64decode(segment + "=" * (-len(segment) % 4))


async def test_token_for__service_account__signed_assertion_for_the_cloud_scope(server: TokenServer) -> None:
    tokens = AccessTokens(allow_private=True)
    assert await tokens.token_for(service_account(server.url)) == "ya29.token-1"
    (parameters,) = server.requests
    assert parameters["grant_type"] == ["urn:ietf:params:oauth:grant-type:jwt-bearer"]
    head, claims, signature = parameters["assertion"][0].split(".")
    decoded_claims = json.loads(decoded(claims))
    assert (decoded_claims["iss"], decoded_claims["scope"]) == (EMAIL, SCOPE)
    private_key().public_key().verify(
        decoded(signature), f"{head}.{claims}".encode(), padding.PKCS1v15(), hashes.SHA256()
    )


async def test_token_for__same_account_again__kept_until_five_minutes_before_it_expires(server: TokenServer) -> None:
    credentials = service_account(server.url)
    clock = Clock(0.0)
    tokens = AccessTokens(allow_private=True, clock=clock)
    expires = fetch_token(credentials, allow_private=True).expires_at
    clock.now = expires - 3600
    assert await tokens.token_for(credentials) == "ya29.token-2"
    clock.now = expires - 310
    # The same account comes in another object, since a snapshot makes new credentials.
    assert await tokens.token_for(service_account(server.url)) == "ya29.token-2"
    clock.now = expires - 290
    assert await tokens.token_for(credentials) == "ya29.token-3"


async def test_token_for__without_a_lifetime__requested_each_time(server: TokenServer) -> None:
    server.lifetime = {}
    tokens = AccessTokens(allow_private=True)
    credentials = service_account(server.url)
    assert [await tokens.token_for(credentials) for _ in range(2)] == ["ya29.token-1", "ya29.token-2"]


async def test_token_for__many_at_once__one_request(server: TokenServer) -> None:
    tokens = AccessTokens(allow_private=True)
    credentials = service_account(server.url)
    found = await asyncio.gather(*(tokens.token_for(credentials) for _ in range(20)))
    assert set(found) == {"ya29.token-1"}
    assert len(server.requests) == 1


async def test_token_for__first_waiter_gives_up__others_get_the_token(server: TokenServer) -> None:
    tokens = AccessTokens(allow_private=True)
    credentials = service_account(server.url)
    first = asyncio.create_task(tokens.token_for(credentials))
    second = asyncio.create_task(tokens.token_for(credentials))
    await asyncio.sleep(0)
    first.cancel()
    assert await second == "ya29.token-1"
    with pytest.raises(asyncio.CancelledError):
        await first
    assert len(server.requests) == 1


async def test_token_for__two_accounts__a_token_each(server: TokenServer) -> None:
    tokens = AccessTokens(allow_private=True)
    one = await tokens.token_for(service_account(server.url))
    other = await tokens.token_for(service_account(server.url, client_email="other@fake-project.test"))
    assert {one, other} == {"ya29.token-1", "ya29.token-2"}


async def test_token_for__account_refused__credentials_failure_with_the_reason(server: TokenServer) -> None:
    server.refusal = 400, {"error": "invalid_grant", "error_description": "Invalid grant: account not found"}
    credentials = service_account(server.url)
    with pytest.raises(ProviderError, match="account not found") as caught:
        await AccessTokens(allow_private=True).token_for(credentials)
    assert caught.value.kind is FailureKind.CREDENTIALS
    assert_no_secret(caught.value, credentials)


@pytest.mark.parametrize(
    "raw",
    [
        b"<html>Log in</html>",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"access_token":null}',
        b'{"access_token":7,"expires_in":3600}',
        b'{"access_token":"a","expires_in":"soon"}',
        b'{"access_token":"a","expires_in":1e30}',
        b'{"access_token":"a","expires_in":[1]}',
    ],
)
@pytest.mark.parametrize("status", [200, 400])
async def test_token_for__answer_of_any_form__no_other_failure_than_a_providers(
    server: TokenServer, raw: bytes, status: int
) -> None:
    server.raw, server.refusal = raw, (status, {})

    with pytest.raises(ProviderError) as caught:
        await AccessTokens(allow_private=True).token_for(service_account(server.url))
    assert caught.value.kind in (FailureKind.UNAVAILABLE, FailureKind.CREDENTIALS)


async def test_token_for__refused_then_accepted__not_remembered(server: TokenServer) -> None:
    tokens = AccessTokens(allow_private=True)
    credentials = service_account(server.url)
    server.refusal = 401, {"error": "invalid_client", "error_description": "disabled"}
    with pytest.raises(ProviderError):
        await tokens.token_for(credentials)
    server.refusal = None
    assert await tokens.token_for(credentials) == "ya29.token-2"


async def test_token_for__server_away__unavailable() -> None:
    credentials = service_account("http://127.0.0.1:9/token")
    with pytest.raises(ProviderError, match="did not answer") as caught:
        await AccessTokens(allow_private=True).token_for(credentials)
    assert caught.value.kind is FailureKind.UNAVAILABLE
    assert_no_secret(caught.value, credentials)


async def test_token_for__refused_while_the_old_one_holds__the_old_one(server: TokenServer) -> None:
    clock = Clock(0.0)
    tokens = AccessTokens(allow_private=True, clock=clock)
    credentials = service_account(server.url)
    expires = fetch_token(credentials, allow_private=True).expires_at
    clock.now = expires - 3600
    token = await tokens.token_for(credentials)
    server.refusal = 400, {"error": "invalid_grant", "error_description": "not now"}
    clock.now = expires - 60
    assert await tokens.token_for(credentials) == token
    clock.now = expires + 60
    with pytest.raises(ProviderError):
        await tokens.token_for(credentials)


@tabled
async def test_token_for__token_server_not_googles__refused_unasked(token_uri: str) -> None:
    with pytest.raises(ProviderError, match="not Google's") as caught:
        await AccessTokens().token_for(service_account(token_uri))
    assert caught.value.kind is FailureKind.CREDENTIALS


@tabled
async def test_token_for__no_service_account__credentials_failure(secret: str) -> None:
    credentials = Credentials(7, "google_vertex", "", secret)
    with pytest.raises(ProviderError) as caught:
        await AccessTokens(allow_private=True).token_for(credentials)
    assert caught.value.kind is FailureKind.CREDENTIALS
    assert "secret" not in caught.value.message


async def test_token_for__unreadable_key__failure_does_not_quote_it(server: TokenServer) -> None:
    credentials = service_account(server.url, private_key="-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END")
    with pytest.raises(ProviderError) as caught:
        await AccessTokens(allow_private=True).token_for(credentials)
    assert caught.value.kind is FailureKind.CREDENTIALS
    assert "c2VjcmV0" not in caught.value.message
    assert not server.requests


def assert_no_secret(error: ProviderError, credentials: Credentials) -> None:
    key = json.loads(credentials.secret)["private_key"]
    assert key.splitlines()[1] not in error.message
    assert credentials.secret not in error.message
