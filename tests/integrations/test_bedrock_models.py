"""Tests the list of Bedrock's models and the check of credentials, by boto3 against a fake control plane."""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import Mapping
from typing import Any

import pytest

from integrations.connectivity.bedrock_models import BedrockModel, check, list_models
from integrations.connectivity.exchange import HttpAnswer, NoAnswerError, Sender
from integrations.connectivity.outcomes import Reason
from integrations.providers.base import Credentials, UpstreamRequest
from integrations.providers.errors import FailureKind, ProviderError
from tests.fakes.upstream import Answer, Connection, Received, UpstreamServer
from tests.tables.cases import stored, tabled

SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
ACCESS = {"access_key_id": "AKIDEXAMPLE", "secret_access_key": SECRET, "session_token": "token/=="}
SEND = Sender(allow_private=True).send
MODELS: dict[str, Any] = stored(__file__, "MODELS")


def profile(name: str, status: str = "ACTIVE") -> dict[str, Any]:
    return {
        "inferenceProfileId": name,
        "inferenceProfileName": f"Profile {name}",
        "inferenceProfileArn": f"arn:aws:bedrock:eu-west-1:123456789012:inference-profile/{name}",
        "models": [{"modelArn": "arn:aws:bedrock:eu-west-1::foundation-model/anthropic.claude-sonnet-5"}],
        "status": status,
        "type": "SYSTEM_DEFINED",
    }


def credentials(base_url: str, secret: str = "", **extra: str) -> Credentials:
    given = {"region": "eu-west-1", **(extra or ACCESS)}
    return Credentials(integration_id=7, provider="bedrock", base_url=base_url, secret=secret, extra=given)


def answers(pages: Mapping[str, tuple[int, Mapping[str, Any]]], *, error_type: str = "") -> Answer:
    """Returns a server's answers. `pages` maps a path with its query to status and body."""

    async def answer(request: Received, connection: Connection) -> None:
        status, body = pages[request.path.partition("?")[0] if request.path not in pages else request.path]
        headers = {"content-type": "application/json"}
        if status != 200:
            headers["x-amzn-errortype"] = error_type
        await connection.send_whole(status, json.dumps(body).encode(), headers)

    return answer


def test_list_models__on_demand_and_active_profiles__ids_that_can_be_called() -> None:
    pages: dict[str, tuple[int, dict[str, Any]]] = {
        "/foundation-models": (200, MODELS),
        "/inference-profiles": (
            200,
            {"inferenceProfileSummaries": [profile("eu.anthropic.claude-sonnet-5")], "nextToken": "more"},
        ),
        "/inference-profiles?nextToken=more": (
            200,
            {"inferenceProfileSummaries": [profile("eu.old", "INACTIVE"), profile("global.amazon.nova-2-lite-v1:0")]},
        ),
    }
    with UpstreamServer(answers(pages)) as server:
        found = list_models(credentials(server.url), SEND)
        assert found == [
            BedrockModel("amazon.nova-lite-v1:0", "Nova Lite"),
            BedrockModel("eu.anthropic.claude-sonnet-5", "Profile eu.anthropic.claude-sonnet-5"),
            BedrockModel("global.amazon.nova-2-lite-v1:0", "Profile global.amazon.nova-2-lite-v1:0"),
        ]
        signed = server.received[0].headers
    assert "Credential=AKIDEXAMPLE/" in signed["authorization"]
    assert "/eu-west-1/bedrock/aws4_request" in signed["authorization"]
    assert signed["x-amz-security-token"] == "token/=="


def test_list_models__profiles_not_permitted__models_alone_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    pages: dict[str, tuple[int, dict[str, Any]]] = {
        "/foundation-models": (200, MODELS),
        "/inference-profiles": (403, {"message": "no"}),
    }
    server = UpstreamServer(answers(pages, error_type="AccessDeniedException"))
    with server, caplog.at_level(logging.WARNING, logger="integrations.bedrock"):
        found = list_models(credentials(server.url), SEND)
    assert [model.id for model in found] == ["amazon.nova-lite-v1:0"]
    assert "inference_profiles.refused" in caplog.text


def test_check__api_key__bearer_header_and_no_signature() -> None:
    with UpstreamServer(answers({"/foundation-models": (200, MODELS)})) as server:
        check(credentials(server.url, "bedrock-api-key-0123456789"), SEND)
        headers = server.received[0].headers
    assert headers["authorization"] == "Bearer bedrock-api-key-0123456789"
    assert "x-amz-date" not in headers


@tabled
def test_check__refused__kind_and_message_without_secrets(status: int, error_type: str, kind: FailureKind) -> None:
    message = f"User arn:aws:iam::123456789012:user/x with {SECRET} and token/== is not authorized"
    pages = {"/foundation-models": (status, {"message": message})}
    with UpstreamServer(answers(pages, error_type=error_type)) as server, pytest.raises(ProviderError) as caught:
        check(credentials(server.url), SEND)
    error = caught.value
    assert (error.kind, error.provider, error.status) == (kind, "bedrock", status)
    assert "is not authorized" in error.message
    for secret in (SECRET, "token/==", "123456789012"):
        assert secret not in str(error)


def test_check__nobody_listens__exception_of_the_sender() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(NoAnswerError) as caught:
            check(credentials(f"http://127.0.0.1:{port}"), SEND)
    assert caught.value.reason is Reason.UNREACHABLE


@pytest.mark.parametrize(
    ("extra", "problem"),
    [
        ({"access_key_id": "AK"}, "neither"),
        ({"access_key_id": "AK", "secret_access_key": "SK", "region": ""}, "no region"),
    ],
)
def test_check__incomplete__credentials(extra: dict[str, str], problem: str) -> None:
    with pytest.raises(ProviderError, match=problem) as caught:
        check(credentials("", **extra), SEND)
    assert caught.value.kind is FailureKind.CREDENTIALS


def test_check__runtime_address__calls_the_control_plane_beside_it() -> None:
    urls: list[str] = []

    def send(request: UpstreamRequest) -> HttpAnswer:
        urls.append(request.url)
        raise ConnectionError

    for base_url in ("", "https://bedrock-runtime.{region}.amazonaws.com", "https://vpce-1.bedrock-runtime.test"):
        with pytest.raises(ConnectionError):
            check(credentials(base_url), send)
    hosts = {url.split("/")[2] for url in urls}
    assert hosts == {"bedrock.eu-west-1.amazonaws.com", "vpce-1.bedrock.test"}
