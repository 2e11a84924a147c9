"""The models that a Bedrock integration may use, and the test of its credentials, both read from Bedrock's control
plane. boto3, AWS's own client, takes care of paging, endpoints and errors. It blocks, so management code calls it in a
thread and never on the event loop.
https://docs.aws.amazon.com/bedrock/latest/APIReference/API_ListFoundationModels.html"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

from integrations.connectivity.exchange import HttpAnswer
from integrations.providers.base import Credentials, UpstreamRequest
from integrations.providers.bedrock.failures import classify, hide_account
from integrations.providers.common.failures import redact
from integrations.providers.errors import FailureKind, ProviderError, unusable

logger = logging.getLogger("integrations.bedrock")

_PROVIDER = "bedrock"
_ATTEMPTS = 1  # A person waits for the answer and can repeat the request, so boto3 does not.
_ON_DEMAND = "ON_DEMAND"
# botocore lets these exceptions of Python through when an answer is JSON of another shape than AWS's.
_UNREADABLE = (ValueError, TypeError, LookupError, AttributeError, RecursionError)


@dataclass(frozen=True, slots=True)
class BedrockModel:
    """`id` is the name in a request: that of a model served on demand, or of a cross-region inference profile."""

    id: str
    name: str


_Send = Callable[[UpstreamRequest], HttpAnswer]


def check(credentials: Credentials, send: _Send) -> None:
    """Makes the cheapest call that needs working credentials; nothing is billed. Raises ProviderError. `send` sends the
    signed request in place of botocore, which connects to whatever address it gets; exceptions of `send` pass through
    unchanged."""
    with _translated(credentials):
        client = _client(credentials, send)
        try:
            # botocore reads a body that is not JSON as an answer without fields, so the field is checked here.
            lists = "modelSummaries" in client.list_foundation_models()
        except _UNREADABLE:
            lists = False
        if not lists:
            raise unusable("the server does not list models", _PROVIDER)


def list_models(credentials: Credentials, send: _Send) -> list[BedrockModel]:
    """Returns the models with text output that can be called by id, then the inference profiles. Raises ProviderError.
    `send` is that of `check`."""
    with _translated(credentials):
        client = _client(credentials, send)
        found = client.list_foundation_models(byOutputModality="TEXT")["modelSummaries"]
        models = [
            BedrockModel(summary["modelId"], summary.get("modelName", summary["modelId"]))
            for summary in found
            if _ON_DEMAND in summary.get("inferenceTypesSupported", [])
        ]
    return models + _profiles(client, credentials)


def _profiles(client: Any, credentials: Credentials) -> list[BedrockModel]:
    """Returns an empty list without permission to list profiles: it is separate from that for models, which are useful
    alone."""
    try:
        with _translated(credentials):
            pages = list(client.get_paginator("list_inference_profiles").paginate())
    except ProviderError as error:
        if error.kind is not FailureKind.CREDENTIALS:
            raise
        logger.warning("inference_profiles.refused", extra={"integration_id": credentials.integration_id})
        return []
    profiles = [profile for page in pages for profile in page["inferenceProfileSummaries"]]
    return [
        BedrockModel(profile["inferenceProfileId"], profile["inferenceProfileName"])
        for profile in profiles
        if profile["status"] == "ACTIVE"
    ]


def _client(credentials: Credentials, send: _Send) -> Any:
    # boto3 is imported here because importing it is slow and few processes need it.
    import boto3
    from botocore import UNSIGNED
    from botocore.config import Config

    extra = credentials.extra
    if not credentials.secret and not (extra.get("access_key_id") and extra.get("secret_access_key")):
        raise _credentials_problem("has neither an API key nor access keys")
    if not extra.get("region"):
        raise _credentials_problem("has no region")
    # A new session is used because the default one is shared between threads and searches the machine for credentials.
    session = boto3.Session(
        aws_access_key_id=extra.get("access_key_id") or None,
        aws_secret_access_key=extra.get("secret_access_key") or None,
        aws_session_token=extra.get("session_token") or None,
        region_name=extra["region"],
    )
    config = Config(
        retries={"total_max_attempts": _ATTEMPTS},
        signature_version=UNSIGNED if credentials.secret else "v4",
    )
    client = session.client("bedrock", endpoint_url=_endpoint(credentials), config=config)
    if credentials.secret:
        client.meta.events.register("request-created.bedrock.*", partial(_add_key, credentials.secret))
    client.meta.events.register("before-send.bedrock.*", partial(_sent, send))
    return client


def _add_key(secret: str, request: Any, **_: Any) -> None:
    """Adds a Bedrock API key to requests, since botocore itself takes such a key from the environment only."""
    request.headers["Authorization"] = f"Bearer {secret}"


def _sent(send: _Send, request: Any, **_: Any) -> Any:
    """Handles botocore's `before-send` event by sending the request in place of botocore."""
    from botocore.awsrequest import AWSResponse

    headers = {name.lower(): _text(value) for name, value in request.headers.items()}
    answer = send(UpstreamRequest(request.method, request.url, headers, request.body or b""))
    # The type stubs ask for botocore's own class of headers, and the class itself accepts any mapping.
    response: Any = AWSResponse
    return response(request.url, answer.status, answer.headers, SimpleNamespace(stream=lambda: (answer.body,)))


def _text(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _endpoint(credentials: Credentials) -> str | None:
    base_url = credentials.base_url.replace("{region}", credentials.extra.get("region", ""))
    return base_url.replace("bedrock-runtime.", "bedrock.") or None


@contextmanager
def _translated(credentials: Credentials) -> Iterator[None]:
    """Raises boto3's errors as ProviderError, with the integration's secrets removed from the text."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except ClientError as error:
        raise _cleaned(_provider_error(error), credentials) from None
    except BotoCoreError as error:
        raise _cleaned(_unanswered(error), credentials) from None


def _cleaned(error: ProviderError, credentials: Credentials) -> ProviderError:
    names = ("access_key_id", "secret_access_key", "session_token")
    redact(error, (credentials.secret, *(credentials.extra.get(name, "") for name in names)))
    hide_account(error)
    return error


def _provider_error(error: Any) -> ProviderError:
    details, status = error.response.get("Error", {}), error.response["ResponseMetadata"]["HTTPStatusCode"]
    body = json.dumps({"message": details.get("Message", "")}).encode()
    return classify(status, {"x-amzn-errortype": details.get("Code", "")}, body)


def _unanswered(error: Exception) -> ProviderError:
    """Returns the failure for a call without an answer. Its text names only the kind of failure, since the library's
    own messages may quote addresses and keys."""
    from botocore.parsers import ResponseParserError

    if isinstance(error, ResponseParserError):
        return ProviderError("Bedrock's answer cannot be read", kind=FailureKind.UNUSABLE, provider=_PROVIDER)
    return ProviderError(
        f"the request to Bedrock could not be made ({type(error).__name__})",
        kind=FailureKind.CREDENTIALS,
        provider=_PROVIDER,
    )


def _credentials_problem(problem: str) -> ProviderError:
    return ProviderError(f"the bedrock integration {problem}", kind=FailureKind.CREDENTIALS, provider=_PROVIDER)
