"""Tests credentials against their provider. Blocks: for management code, never for the event loop."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgspec

from integrations.connectivity.bedrock_models import check as check_bedrock
from integrations.connectivity.calls import Call, build, call_of, needs_token
from integrations.connectivity.exchange import HttpAnswer, NoAnswerError, Sender
from integrations.connectivity.outcomes import ConnectionOutcome, Reason, explanation, reason_of
from integrations.providers.additions import with_headers
from integrations.providers.base import Credentials, UpstreamRequest
from integrations.providers.common.failures import failure_in_body
from integrations.providers.common.redaction import secrets_of, without_secrets
from integrations.providers.errors import ProviderError
from integrations.registry import adapter_for
from integrations.transport.access_tokens import fetch_token

_DETAIL_LENGTH = 500
_BEDROCK = "bedrock"


def try_credentials(
    credentials: Credentials, sender: Sender, clock: Callable[[], float] = time.perf_counter
) -> ConnectionOutcome:
    """Makes one call and never repeats it: a provider that limits its callers would count the second one too."""
    trial = _Trial(credentials, sender, clock)
    try:
        return trial.bedrock() if credentials.provider == _BEDROCK else trial.by_call(call_of(credentials.provider))
    except NoAnswerError as error:
        return trial.outcome(error.reason, error.problem)
    except ProviderError as error:
        # The error comes from building the request or fetching its token, before the provider was called, or from
        # boto3.
        return trial.refused(error)


class _Trial:
    def __init__(self, credentials: Credentials, sender: Sender, clock: Callable[[], float]) -> None:
        self._credentials = credentials
        self._sender = sender
        self._clock = clock
        self._secrets = secrets_of(credentials)
        self._status: int | None = None
        self._latency_ms: float | None = None

    def by_call(self, call: Call) -> ConnectionOutcome:
        credentials, token = self._credentials, ""
        if needs_token(credentials):
            token = fetch_token(credentials, allow_private=self._sender.allow_private).value
            self._secrets = secrets_of(credentials, token)
        answer = self._send(build(call, credentials, token))
        if 200 <= answer.status < 300:
            return self._outcome_of(call, answer)
        error = adapter_for(credentials.provider).classify_failure(answer.status, answer.headers, answer.body)
        return self.refused(error, answer.body)

    def bedrock(self) -> ConnectionOutcome:
        check_bedrock(self._credentials, send=self._send)
        return self.outcome(Reason.OK, "list the models")

    def refused(self, error: ProviderError, body: bytes = b"") -> ConnectionOutcome:
        return self.outcome(reason_of(error, body), error.message)

    def outcome(self, reason: Reason, text: str) -> ConnectionOutcome:
        text = without_secrets(text, self._secrets)[:_DETAIL_LENGTH].strip()
        return ConnectionOutcome(reason is Reason.OK, reason, explanation(reason, text), self._status, self._latency_ms)

    def _outcome_of(self, call: Call, answer: HttpAnswer) -> ConnectionOutcome:
        """A status of 200 is not enough: a login page, another service and a proxy send it as well."""
        try:
            decoded: Any = msgspec.json.decode(answer.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return self.outcome(Reason.UNUSABLE_ANSWER, "not JSON")
        if isinstance(decoded, list) and call.lists:
            return self.outcome(Reason.OK, call.description)
        if isinstance(decoded, dict):
            if any(name in decoded for name in call.holds):
                return self.outcome(Reason.OK, call.description)
            if decoded.get("error"):
                return self.refused(failure_in_body(decoded, provider=self._credentials.provider))
        return self.outcome(Reason.UNUSABLE_ANSWER, "JSON without what was asked for")

    def _send(self, request: UpstreamRequest) -> HttpAnswer:
        started = self._clock()
        try:
            answer = self._sender.send(with_headers(request, self._credentials))
        finally:
            self._latency_ms = round((self._clock() - started) * 1000, 1)
        self._status = answer.status
        return answer
