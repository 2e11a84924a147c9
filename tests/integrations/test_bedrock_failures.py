"""Tests the kind and the message of Bedrock's failures."""

from __future__ import annotations

import json

import pytest

from integrations.providers.base import Credentials
from integrations.providers.bedrock import ADAPTER
from integrations.providers.errors import FailureKind
from tests.integrations.bedrock_exchanges import KEYS, bedrock_request
from tests.tables.cases import tabled


@tabled
@pytest.mark.parametrize("field", ["message", "Message"])
def test_failure__exception__its_kind_by_header_or_body(
    status: int, error_type: str, kind: FailureKind, field: str
) -> None:
    text = f"{error_type} of arn:aws:iam::123456789012:user/x"
    header = {"x-amzn-errortype": f"{error_type}:http://internal.amazon.com/coral/com.amazon.bedrock/"}
    by_header = ADAPTER.classify_failure(status, header, json.dumps({field: text}).encode())
    typed = {"__type": f"com.amazon.coral.service#{error_type}", field: text}
    by_body = ADAPTER.classify_failure(status, {}, json.dumps(typed).encode())
    for error in (by_header, by_body):
        assert (error.kind, error.status) == (kind, status)
        assert error.message == f"{error_type} of arn:aws:iam::[redacted]:user/x"


def test_failure__own_secrets__taken_out() -> None:
    secret, token = "an+Odd/Secret", "a token of no known form"
    extra = {**KEYS.extra, "secret_access_key": secret, "session_token": token}
    ADAPTER.build_request(bedrock_request(), Credentials(1, "bedrock", "", "", extra))
    body = json.dumps({"message": f"bad {secret} and {token} of AKIDEXAMPLE"}).encode()
    assert ADAPTER.classify_failure(403, {}, body).message == "bad [redacted] and [redacted] of [redacted]"
