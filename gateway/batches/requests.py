"""Checks the requests of a batch before any is sent, and names the place of a fault.

A vendor would fail the whole batch minutes or hours later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

import msgspec
from django.conf import settings

from core.errors import ApplicationError, ValidationError
from gateway.batches.places import Place
from gateway.errors import ModelNotAllowedError
from gateway.guardrails.checks import checks_of
from gateway.pipeline.context import NativeRequest, RequestContext, RequestState
from gateway.pipeline.guard_input import findings_of, note_findings
from gateway.pipeline.keeping import keepers, keeps, not_kept
from gateway.pipeline.parse import parse
from gateway.project_settings.guardrails import TrustMode
from gateway.protocol.headers import RequestHeaders
from gateway.protocol.kept_fields import references_of
from gateway.protocol.wire import AUTO, LazyFields, Name, explain
from gateway.surfaces.base import Surface
from gateway.surfaces.chat.surface import CHAT
from gateway.surfaces.completions.surface import SURFACE as COMPLETIONS
from gateway.surfaces.messages.surface import SURFACE as MESSAGES
from gateway.surfaces.operations import EMBEDDINGS, IMAGES, MODERATIONS
from gateway.surfaces.responses.surface import SURFACE as RESPONSES
from gateway.worker.current import on_loop
from integrations.providers.given import Given

# More than any vendor takes (https://platform.claude.com/docs/en/build-with-claude/batch-processing: 100,000).
MAX_REQUESTS = 100_000
MESSAGES_ENDPOINT = "/v1/messages"
_MAX_ID_CHARACTERS = 512
_MAX_VERDICTS = 100
# The endpoints of https://platform.openai.com/docs/api-reference/batch/create whose requests the gateway can read.
SURFACES: Mapping[str, Surface] = {
    "/v1/chat/completions": CHAT,
    "/v1/responses": RESPONSES,
    "/v1/embeddings": EMBEDDINGS,
    "/v1/completions": COMPLETIONS,
    "/v1/moderations": MODERATIONS,
    "/v1/images/generations": IMAGES,
    MESSAGES_ENDPOINT: MESSAGES,
}
_UNSUPPORTED = "unsupported_parameter"
_OWN = ("prompt_config", "prompt_variables", "models", "provider")


class _Body(msgspec.Struct):
    model: Name
    stream: bool | None = None
    prompt_config: Any = None
    prompt_variables: Any = None
    models: Any = None
    provider: Any = None


CustomId = Annotated[str, msgspec.Meta(min_length=1, max_length=_MAX_ID_CHARACTERS)]


class _Line(msgspec.Struct):
    """A line of an input file (https://platform.openai.com/docs/guides/batch)."""

    custom_id: CustomId
    method: Literal["POST"]
    url: str
    body: msgspec.Raw


class _MessageRequest(msgspec.Struct):
    """A request of a message batch (https://platform.claude.com/docs/en/api/creating-message-batches)."""

    custom_id: CustomId
    params: msgspec.Raw


_decode_line = msgspec.json.Decoder(_Line).decode
_decode_message_request = msgspec.json.Decoder(_MessageRequest).decode
_decode_body = msgspec.json.Decoder(_Body).decode


def normal_endpoint(endpoint: str) -> str:
    """Returns an endpoint as OpenAI writes it. Azure omits `/v1`
    (https://learn.microsoft.com/azure/ai-foundry/openai/how-to/batch)."""
    return endpoint if endpoint.startswith("/v1/") else f"/v1{endpoint}"


class RequestChecks:
    def __init__(self, state: RequestState, place: Place) -> None:
        self._state, self._place = state, place
        self._ids: set[str] = set()
        self._known: dict[Given, frozenset[int | None]] = {}
        self.endpoint = ""
        self.models: list[str] = []
        guardrails = state.snapshot.settings.guardrails
        self._is_guarded = bool(guardrails.is_on and checks_of(guardrails))
        self._enforced = guardrails.trust_mode is TrustMode.ENFORCE

    @property
    def count(self) -> int:
        return len(self._ids)

    def check_lines(self, lines: Iterable[tuple[int, bytes]]) -> None:
        for number, line in lines:
            self._at(f"line {number}", self._check_line, line)
        if not self._ids:
            raise ValidationError("file: it has no line; each line is one request")

    def check_messages(self, requests: Iterable[msgspec.Raw]) -> None:
        self.endpoint = MESSAGES_ENDPOINT
        for index, request in enumerate(requests):
            self._at(f"requests[{index}]", self._check_message, request)
        if not self._ids:
            raise ValidationError("requests: at least one request is required")

    def _at(self, place: str, check: Any, content: Any) -> None:
        try:
            check(content)
        except ApplicationError as error:
            raise _placed(error, place) from None
        except msgspec.ValidationError as problem:
            raise _placed(_explained(problem), place) from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise ValidationError(f"{place}: not valid JSON", code="invalid_json") from None

    def _check_line(self, line: bytes) -> None:
        if len(line) > settings.GATEWAY_BODY_BYTES:
            raise ValidationError(f"larger than {settings.GATEWAY_BODY_BYTES} bytes", code="message_too_large")
        # The decoder does not look at the characters of fields that it skips.
        line.decode("utf-8")
        found = _decode_line(line)
        self._check_id(found.custom_id)
        url = normal_endpoint(found.url)
        if url not in SURFACES or url == MESSAGES_ENDPOINT:
            served = ", ".join(one for one in SURFACES if one != MESSAGES_ENDPOINT)
            raise ValidationError(f"url: {found.url[:100]!r} is none of {served}")
        if self.endpoint and url != self.endpoint:
            raise ValidationError(f"url: {found.url!r} differs from {self.endpoint!r} in the lines before it")
        self.endpoint = url
        self._check_body(bytes(found.body), "body")

    def _check_message(self, request: msgspec.Raw) -> None:
        if len(request) > settings.GATEWAY_BODY_BYTES:
            raise ValidationError(f"larger than {settings.GATEWAY_BODY_BYTES} bytes", code="message_too_large")
        bytes(request).decode("utf-8")
        found = _decode_message_request(request)
        self._check_id(found.custom_id)
        self._check_body(bytes(found.params), "params")

    def _check_id(self, custom_id: str) -> None:
        if custom_id in self._ids:
            raise ValidationError(f"custom_id: {custom_id!r} is the id of an earlier request")
        if len(self._ids) >= MAX_REQUESTS:
            raise ValidationError(f"a batch has at most {MAX_REQUESTS} requests")
        self._ids.add(custom_id)

    def _check_body(self, body: bytes, field: str) -> None:
        try:
            found = _decode_body(body)
        except msgspec.ValidationError as problem:
            raise _explained(problem, field) from None
        for name in _OWN:
            if getattr(found, name) is not None:
                raise ValidationError(
                    f"{field}.{name}: managed prompts and routing do not apply to batches", code=_UNSUPPORTED
                )
        if found.stream:
            raise ValidationError(f"{field}.stream: requests in batches are answered whole", code=_UNSUPPORTED)
        self._check_model(found.model, f"{field}.model")
        self._check_references(body, field)
        if self._is_guarded:
            self._guard(body)

    def _check_model(self, model: str, field: str) -> None:
        if model in self.models:
            return
        place = self._place
        name = place.client_name(model)
        if model == AUTO or model.startswith(f"{place.provider}/") or model in self._state.snapshot.groups:
            raise ValidationError(
                f"{field}: name a model as {place.provider} does; {model!r} means something here only"
            )
        if place.deployment is not None and not place.deployment.serves(name):
            raise ValidationError(f"{field}: the integration {place.name!r} does not serve {model!r}")
        if not self._state.key.permits(place.provider, name, place.name):
            raise ModelNotAllowedError(f"{field}: this API key may not call {model!r}")
        self.models.append(model)

    def _check_references(self, body: bytes, field: str) -> None:
        """Refuses files that the provider may keep for another project, as for a single request."""
        credentials = self._place.credentials
        named = () if credentials.own_account else references_of(body, SURFACES[self.endpoint].operation)
        if unasked := [one for one in named if one.given not in self._known]:
            self._known |= on_loop(lambda runtime: keepers(runtime, self._state.snapshot, unasked))
        for reference in named:
            if not keeps(credentials, reference, self._known):
                raise not_kept(reference._replace(field=f"{field}.{reference.field}"))

    def _guard(self, body: bytes) -> None:
        state = self._state
        found = findings_of(_context_of(state, SURFACES[self.endpoint], body), state)
        if self._enforced or len(state.verdicts) < _MAX_VERDICTS:
            note_findings(found, state, enforced=self._enforced)


def _context_of(state: RequestState, surface: Surface, body: bytes) -> RequestContext:
    request = surface.read(body)
    chat, headers = request.body, RequestHeaders()
    native = None
    if surface is not CHAT:
        native = NativeRequest(surface, body, opaque=request.opaque, fields=request.fields)
    parsed = parse(chat, headers, request.fields)
    return RequestContext(state.snapshot, headers, chat, parsed, LazyFields(chat, request.fields), native)


def _placed(error: ApplicationError, place: str) -> ApplicationError:
    error.message = f"{place}: {error.message}"
    error.args = (error.message,)
    return error


def _explained(problem: msgspec.ValidationError, within: str = "") -> ValidationError:
    error = explain(str(problem))
    if error.code == "invalid_json":  # The whole is no object.
        return ValidationError(f"{within}: has to be a JSON object" if within else "has to be a JSON object")
    return ValidationError(f"{within}.{error.message}" if within else error.message, code=error.code)
