"""Tests addresses and signatures against boto3's requests and a server's own computation."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

import boto3
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import ReadOnlyCredentials

from integrations.providers.base import Credentials, UpstreamRequest
from integrations.providers.bedrock import ADAPTER
from integrations.providers.bedrock.request import build_body
from integrations.providers.errors import FailureKind, ProviderError, UnsupportedParameterError
from integrations.transport.base import Timeouts
from integrations.transport.pool import PooledTransport
from tests.fakes.dialects.bedrock import FAKE
from tests.fakes.dialects.server import DialectServer, answer_with, script_path
from tests.fakes.dialects.story import Story
from tests.fakes.upstream import Received
from tests.integrations.bedrock_exchanges import CLAUDE, KEYS, bedrock_request
from tests.tables.cases import tabled

TOKEN = "IQoJb3JpZ2luX2VjEXAMPLE/token=="  # The token is an example.
MODELS = [
    CLAUDE,
    "amazon.nova-lite-v1:0",
    "arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile/abc123",
    "arn:aws:sagemaker:eu-west-1:123456789012:endpoint/My-Endpoint",
]


def credentials(base_url: str = "", secret: str = "", **changes: str) -> Credentials:
    return Credentials(1, "bedrock", base_url, secret, {**KEYS.extra, **changes})


def signature_of(url: str, headers: Mapping[str, str], body: bytes, extra: Mapping[str, str]) -> str:
    """Returns the signature that AWS would compute from the received request, over exactly the headers that it
    names."""
    keys = ReadOnlyCredentials(extra["access_key_id"], extra["secret_access_key"], None)
    signed = headers["authorization"].split("SignedHeaders=")[1].split(",")[0].split(";")
    request = AWSRequest("POST", url, headers={name: headers[name] for name in signed}, data=body)
    request.context["timestamp"] = headers["x-amz-date"]
    signer = SigV4Auth(keys, "bedrock", extra["region"])
    text = signer.string_to_sign(request, signer.canonical_request(request))
    signature: str = signer.signature(text, request)
    return signature


async def send(request: UpstreamRequest) -> int:
    transport = PooledTransport()
    try:
        response = await transport.send(request, Timeouts())
        await response.read(limit=1 << 20)
        return response.status
    finally:
        await transport.close()


def assert_signed(received: Received, extra: Mapping[str, str]) -> None:
    url = f"http://{received.headers['host']}{received.path}"
    expected = signature_of(url, received.headers, received.body, extra)
    assert received.headers["authorization"].endswith(f"Signature={expected}")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", MODELS)
def test_signature__of_what_arrived__the_one_that_was_sent(model: str, stream: bool) -> None:
    with DialectServer() as server:
        server.play("s", answer_with(FAKE, Story(text="x")))
        given = credentials(server.base_url("s"), session_token=TOKEN)
        request = ADAPTER.build_request(bedrock_request(model, stream=stream), given)
        assert asyncio.run(send(request)) == 200
        (received,) = server.script("s").received
        assert_signed(received, given.extra)
    assert received.headers["x-amz-security-token"] == TOKEN
    assert "x-amz-security-token" in received.headers["authorization"]
    kind = "application/vnd.amazon.eventstream" if stream else "application/json"
    assert received.headers["accept"] == kind
    assert received.path == "/" + request.url.split("/", 3)[3]
    assert unquote(script_path(received.path).split("/")[2]) == model


@pytest.mark.parametrize("model", MODELS)
def test_path_and_body__boto3_with_the_same_parameters__the_same(model: str) -> None:
    request = bedrock_request(model, max_tokens=7)
    body, _ = build_body(request)
    with DialectServer() as server:
        server.play("s", answer_with(FAKE, Story(text="x")))
        base_url = server.base_url("s")
        session = boto3.Session(KEYS.extra["access_key_id"], KEYS.extra["secret_access_key"], region_name="us-east-1")
        client = session.client("bedrock-runtime", endpoint_url=base_url, config=Config(retries={"max_attempts": 0}))
        client.converse(modelId=model, **body)
        client.close()
        (received,) = server.script("s").received
    ours = ADAPTER.build_request(request, credentials(base_url))
    assert ours.url == f"http://{received.headers['host']}{received.path}"
    assert json.loads(ours.body) == json.loads(received.body)


def test_signature__at_a_fixed_time__of_the_day_and_changed_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def signed(day: int, access: Credentials) -> UpstreamRequest:
        now = datetime(2026, 1, day, 23, 59, 59, tzinfo=UTC)
        monkeypatch.setattr("botocore.auth.get_current_datetime", lambda *_, **__: now)
        return ADAPTER.build_request(bedrock_request(), access)

    access = credentials()
    first, again, next_day = signed(1, access), signed(1, access), signed(2, access)
    assert first == again
    for request, day in ((first, "20260101"), (next_day, "20260102")):
        assert request.headers["x-amz-date"] == f"{day}T235959Z"
        assert f"/{day}/us-east-1/bedrock/aws4_request" in request.headers["authorization"]
        host = {"host": "bedrock-runtime.us-east-1.amazonaws.com"}
        expected = signature_of(request.url, {**request.headers, **host}, request.body, access.extra)
        assert request.headers["authorization"].endswith(expected)
    other = signed(1, credentials(secret_access_key="another"))
    assert other.headers["authorization"] != first.headers["authorization"]


def test_authorization__api_key__bearer_and_unsigned() -> None:
    request = ADAPTER.build_request(bedrock_request(), credentials(secret="bedrock-api-key-1"))
    assert request.headers["authorization"] == "Bearer bedrock-api-key-1"
    assert "x-amz-date" not in request.headers


@tabled
def test_url__region_and_base__address_of_the_model(base_url: str, region: str, expected: str) -> None:
    request = ADAPTER.build_request(bedrock_request("a:b/c"), credentials(base_url, region=region))
    assert request.url == f"{expected}a%3Ab%2Fc/converse"


@pytest.mark.parametrize("model", ["", ".", "..", " "])
def test_url__name_that_leads_elsewhere__refused(model: str) -> None:
    with pytest.raises(UnsupportedParameterError, match="model"):
        ADAPTER.build_request(bedrock_request(model), KEYS)


@pytest.mark.parametrize(
    "changes",
    [{"region": ""}, {"region": "evil.test/#"}, {"access_key_id": ""}, {"secret_access_key": ""}],
)
def test_credentials__incomplete__error_without_secrets(changes: dict[str, Any]) -> None:
    with pytest.raises(ProviderError, match="the bedrock integration has") as caught:
        ADAPTER.build_request(bedrock_request(), credentials(**changes))
    assert caught.value.kind is FailureKind.CREDENTIALS
    assert KEYS.extra["secret_access_key"] not in str(caught.value)
