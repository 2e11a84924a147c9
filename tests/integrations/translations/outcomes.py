"""Runs the examples: what an adapter makes of a request, an answer, a stream or a failure, as JSON.

What follows from the rest is left out. `sent` holds what the body has else than the request, whose other fields are in
it as they are, except those of `dropped`; so does `answer` beside a vendor's completion. A body of the very same bytes
is `as it came`, a chunk with the bytes of the vendor's third event is `as event 2`, and `usage` is left out of an
answer where it says the `counts` in OpenAI's words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

from integrations.providers.base import StreamEvent, StreamTranslator, UpstreamRequest
from integrations.providers.common.usage import usage_object
from integrations.providers.errors import ProviderError
from integrations.providers.usage import Usage
from tests.integrations.translations.examples import (
    Example,
    adapter_of,
    bytes_of,
    credentials_of,
    pieces_of,
    request_of,
)
from tests.tables.translated import Tables

Json = dict[str, Any]

SAME = "as it came"
NOW = 1_800_000_000
GIVEN = (
    *("provider", "model", "request", "context", "credentials", "whole", "events", "framing", "failure", "estimate"),
    "is_unknown_to_sdk",
)
"""The inputs of an example. `is_unknown_to_sdk` marks a request that the vendor's SDK has no types for."""
_ENVELOPE = ("id", "object", "created", "model")
_RANDOM_ID = re.compile(r"chatcmpl-[0-9a-f]{32}")
_SIGNED = ("authorization", "x-amz-date")


def outcome_of(example: Example, pieces: Iterable[bytes] | None = None) -> Json:
    """Returns what comes of the example; its stream comes in `pieces`, by default an event a piece. The clock stands,
    since answers without a time get the current one."""
    with patch("time.time", return_value=float(NOW)):
        if "events" in example:
            outcome = _stream(example, pieces_of(example) if pieces is None else pieces)
        elif "failure" in example:
            outcome = _failure(example)
        else:
            outcome = _answer(example) if "whole" in example else _request(example)
    decoded: Json = json.loads(_RANDOM_ID.sub("chatcmpl-random", json.dumps(outcome)))
    return decoded


def _request(example: Example) -> Json:
    adapter, request, credentials = adapter_of(example), request_of(example), credentials_of(example)
    outcome: Json = {}
    try:
        needs = adapter.needs(request, credentials)
        if needs.media or needs.access_token:
            outcome["needs"] = [*needs.media, *(["an access token"] if needs.access_token else [])]
        sent = adapter.build_request(request, credentials)
    except ProviderError as error:
        return {**outcome, "refused": error_json(error, provider=adapter.provider)}
    outcome["to"] = _destination(sent, example)
    outcome |= {"sent": SAME} if sent.body == request.body else _changes(request.fields, json.loads(sent.body), "sent")
    if sent.warnings:
        outcome["warnings"] = list(sent.warnings)
    return outcome


def _changes(given: Mapping[str, Any], made: Json, name: str) -> Json:
    changed = {key: value for key, value in made.items() if key not in given or given[key] != value}
    dropped = sorted(key for key in given if key not in made)
    return {name: changed, "dropped": dropped} if dropped else {name: changed}


def _destination(sent: UpstreamRequest, example: Example) -> Json:
    """Returns the address and the headers, without a signature, which is another at any other time."""
    is_signed = sent.headers.get("authorization", "").startswith("AWS4")
    headers = {name: value for name, value in sent.headers.items() if not (is_signed and name in _SIGNED)}
    place: Json = {"url": sent.url.replace(example.get("model") or "\0", "{model}"), **headers}
    if sent.betas is not None:
        place["known betas"] = len(sent.betas)
    return place if sent.method == "POST" else {"method": sent.method, **place}


def _answer(example: Example) -> Json:
    adapter, body = adapter_of(example), bytes_of(example["whole"])
    try:
        parsed = adapter.parse_response(request_of(example), body)
    except ProviderError as error:
        return {"error": error_json(error, provider=adapter.provider)}
    outcome: Json = {"counts": counts_json(parsed.usage)}
    read: Json = {"model": parsed.model, "finish_reason": parsed.finish_reason}
    if parsed.body == body:
        return {**outcome, "answer": SAME, "read": read}
    answer = json.loads(parsed.body)
    ends = [choice["finish_reason"] for choice in answer["choices"]]
    if read != {"model": answer["model"], "finish_reason": ends[0] if ends else None}:
        outcome["read"] = read
    vendors = _in_openais_form(example["whole"])
    shown = _without_usage(answer, parsed.usage, kept="usage" in vendors and vendors["usage"] == answer.get("usage"))
    left_out = answer.keys() - shown.keys()
    outcome |= _changes({name: vendors[name] for name in vendors if name not in left_out}, shown, "answer")
    head = {name: outcome["answer"].pop(name) for name in _ENVELOPE if name in outcome["answer"]}
    outcome["answer"] = _flat(outcome["answer"], "message")
    return {**outcome, "head": head} if head else outcome


def _in_openais_form(body: Any) -> Mapping[str, Any]:
    """Returns the vendor's answer if it is a completion, of which ours differs in little, else nothing."""
    return body if isinstance(body, dict) and "choices" in body else {}


def _stream(example: Example, pieces: Iterable[bytes]) -> Json:
    """Returns the chunks that come of a stream in these pieces, and how it ended."""
    adapter = adapter_of(example)
    stream = adapter.stream(request_of(example))
    events: list[StreamEvent] = []
    outcome: Json = {}
    try:
        for piece in pieces:
            events += stream.feed(piece)
        if "estimate" in example and stream.usage is None:
            stream.usage = Usage(**example["estimate"])
        events += stream.closing()
    except ProviderError as error:
        outcome["error"] = error_json(error, provider=adapter.provider)
    return outcome | _chunks(events, stream, pieces_of(example), is_over="error" not in outcome)


def _chunks(events: list[StreamEvent], stream: StreamTranslator, sent: list[bytes], *, is_over: bool) -> Json:
    chunks = [json.loads(event.data) for event in events]
    head = {name: chunks[0][name] for name in _ENVELOPE if name in chunks[0]} if chunks else {}
    outcome: Json = {"head": head} if head else {}
    outcome["chunks"] = [
        _place(event, chunk, head, sent) or _chunk(event, chunk, head, stream.usage)
        for event, chunk in zip(events, chunks, strict=True)
    ]
    if is_over:
        outcome["counts"] = counts_json(stream.usage)
        ends = [choice["finish_reason"] for chunk in chunks for choice in chunk["choices"] if choice["index"] == 0]
        read = {"model": stream.model, "finish_reason": stream.finish_reason}
        if read != {"model": head.get("model"), "finish_reason": ends[-1] if ends else None}:
            outcome["read"] = read
    return outcome


def _place(event: StreamEvent, chunk: Json, head: Json, sent: list[bytes]) -> str:
    """Returns which of the vendor's events leaves with its own bytes as this chunk; empty for none."""
    if any(chunk.get(name) != value for name, value in head.items()) or not _says_as_usual(event, chunk):
        return ""
    return next((f"as event {number}" for number, piece in enumerate(sent) if event.data in piece), "")


def _says_as_usual(event: StreamEvent, chunk: Json) -> bool:
    """Returns whether the text of the event is that of its first choice, and whether it is output as it seems."""
    choices = chunk["choices"]
    delta = choices[0]["delta"] if choices and choices[0]["index"] == 0 else {}
    seems = any(value for choice in choices for name, value in choice["delta"].items() if name != "role")
    return event.text == (delta.get("content") or "") and event.has_output is bool(seems)


def _chunk(event: StreamEvent, chunk: Json, head: Json, usage: Usage | None) -> Json:
    shown = _without_usage({name: value for name, value in chunk.items() if head.get(name) != value}, usage)
    if usage is not None and "usage" in chunk and "usage" not in shown:
        shown["usage"] = "the counts"
    if not _says_as_usual(event, chunk):
        shown["event"] = {"has_output": event.has_output, "text": event.text}
    flat = _flat(shown, "delta")
    return {"text": event.text} if flat == {"delta": {"content": event.text}} else flat


def _flat(answer: Json, content: str) -> Json:
    """Returns the answer with its one choice in place of the list, as nearly all have it."""
    choices = answer.get("choices")
    if not isinstance(choices, list) or len(choices) != 1 or choices[0].get("index") != 0 or content not in choices[0]:
        return answer
    choice = {name: value for name, value in choices[0].items() if name != "index"}
    if choice.get("finish_reason", "") is None:
        del choice["finish_reason"]
    return {**choice, **{name: value for name, value in answer.items() if name != "choices"}}


def _without_usage(answer: Json, usage: Usage | None, *, kept: bool = False) -> Json:
    if kept or usage is None or "usage" not in answer or answer["usage"] != json.loads(json.dumps(usage_object(usage))):
        return answer
    return {name: value for name, value in answer.items() if name != "usage"}


def _failure(example: Example) -> Json:
    failure: Mapping[str, Any] = example["failure"]
    adapter = adapter_of(example)
    error = adapter.classify_failure(failure["status"], failure.get("headers", {}), bytes_of(failure["body"]))
    return {"error": error_json(error, provider=adapter.provider)}


def error_json(error: ProviderError, *, provider: str) -> Json:
    shown: Json = {"kind": str(error.kind), "message": error.message}
    if type(error) is not ProviderError:
        shown["class"] = type(error).__name__
    if error.provider != provider:
        shown["provider"] = error.provider
    for name in ("parameter", "status", "retry_after", "details", "is_failed_generation"):
        if value := getattr(error, name, None):
            shown[name] = value
    return shown if error.usage is None else {**shown, "counts": counts_json(error.usage)}


def counts_json(usage: Usage | None) -> Any:
    """Returns the counts that are not zero; None without a usage."""
    if usage is None:
        return None
    fields = {name: getattr(usage, name) for name in usage.__struct_fields__}
    kept = {name: value for name, value in fields.items() if value or (value == 0 and name.startswith("billed"))}
    return {name: value if isinstance(value, int | str) else str(value) for name, value in kept.items()}


TABLES = Tables(
    Path(__file__).parent,
    GIVEN,
    outcome_of,
    usual=("provider", "model", "request", "context", "credentials"),
    beside={"to": ("sent",), "sent": ("sent",), "head": ("answer", "chunks"), "framing": ("events",)},
)
