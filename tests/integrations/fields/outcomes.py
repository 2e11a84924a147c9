"""Observes the fate of a field at a provider from outside: by the upstream request and by the warnings."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import Any

from msgspec import structs

from core.errors import ValidationError
from gateway.protocol.wire import decode_request
from gateway.surfaces.base import Surface
from gateway.surfaces.chat.surface import CHAT
from gateway.surfaces.messages.surface import SURFACE as MESSAGES
from gateway.surfaces.responses.surface import SURFACE as RESPONSES
from integrations.capabilities.lookup import max_output_of
from integrations.providers.base import ChatRequest, Media, UpstreamRequest
from integrations.providers.common.carried import carried
from integrations.providers.errors import ProviderError
from tests.integrations.adapters.subject import PDF, PNG, Subject, subject_of
from tests.integrations.fields.sources import Case, Json

# `function_call` and `functions` are outdated names of the gateway's `tool_choice` and `tools`.
_TODAY = {"function_call": "tool_choice", "functions": "tools"}


class Outcome(StrEnum):
    FORWARDED = "forwarded"  # The upstream body has the field under its own name.
    TRANSLATED = "translated"  # The upstream request differs in another place.
    NAMED = "named"  # The field is left out, and x-svc-warning names it.
    REFUSED = "refused"  # The request gets 400 unsupported_parameter with the field's name.
    BARRED = "barred"  # The gateway's own check of the request answers 400 for every provider.
    SILENT = "silent"  # None of the other outcomes occurred, which is a fault.
    BROKEN = "broken"  # The adapter fails in a way that gives the client no proper answer.


@dataclass(frozen=True)
class Place:
    """The place that a request goes to: a provider, one of its models, as the first choice or as a fallback."""

    provider: str
    model: str = ""
    crosses_vendor: bool = False


@dataclass(frozen=True)
class Finding:
    """The fate of a field. `becomes` holds the places in the upstream request that differ with the field."""

    outcome: Outcome
    message: str = ""
    becomes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Sent:
    body: Any = None
    head: tuple[Any, ...] = ()
    warnings: tuple[str, ...] = ()
    refused: str = ""
    barred: str = ""
    broken: str = ""


def observe(case: Case, place: Place) -> Finding:
    after = _send(json.dumps(case.after), place, case.surface)
    if after.broken:
        return Finding(Outcome.BROKEN, after.broken)
    if after.barred:
        return Finding(Outcome.BARRED, after.barred)
    if after.refused:
        outcome = Outcome.REFUSED if _names(after.refused, case.path, *case.after) else Outcome.BROKEN
        return Finding(outcome, after.refused)
    before = _send(json.dumps(case.before), place, case.surface)
    new = [warning for warning in after.warnings if warning not in before.warnings]
    becomes = tuple(dict.fromkeys([*_differences(before.body, after.body), *_head(before, after)]))
    if before.refused or before.barred:
        return Finding(Outcome.TRANSLATED)  # The request with the other value, or without one, is refused.
    if any(_names(warning, case.path) for warning in new):
        return Finding(Outcome.NAMED, "; ".join(new), becomes)
    if not becomes and any(_names(warning, leaf(case.path)) for warning in after.warnings):
        # The same warning names the field whether it has this value or the other.
        return Finding(Outcome.NAMED, "; ".join(after.warnings))
    if not becomes:
        return Finding(Outcome.SILENT, "; ".join(new))
    return Finding(Outcome.FORWARDED if _is_forwarded(case, after.body) else Outcome.TRANSLATED, "", becomes)


def findings(cases: tuple[Case, ...], place: Place) -> Iterator[tuple[Case, Finding]]:
    """Yields each case with its finding, without fields inside one that was left out and named as a whole."""
    settled: list[str] = []
    for case in cases:
        if any(_is_inside(case.path, path) for path in settled):
            continue
        finding = observe(case, place)
        if finding.outcome is Outcome.NAMED and not finding.becomes:
            settled.append(case.path)
        yield case, finding


def leaf(path: str) -> str:
    """Returns the name of the field itself: `image_url.detail=low` becomes `detail`."""
    return re.sub(r"\[[^\]]*\]", "", path.partition("=")[0]).rpartition(".")[2]


def _is_forwarded(case: Case, body: Any) -> bool:
    """Returns True when the value stands in the body under the field's own name."""
    name = leaf(case.path)
    before, there = list(_values(case.before, name)), list(_values(body, name))
    return any(value in there for value in _values(case.after, name) if value not in before)


def _values(holder: Any, name: str) -> Iterator[Any]:
    if isinstance(holder, Mapping):
        for key, value in holder.items():
            if key == name:
                yield value
            yield from _values(value, name)
    elif isinstance(holder, list):
        for value in holder:
            yield from _values(value, name)


def _is_inside(path: str, outer: str) -> bool:
    return path.startswith(outer) and path[len(outer) : len(outer) + 1] in (".", "[") and "=" not in outer


def _names(message: str, path: str, *beside: str) -> bool:
    """Returns True when a warning names the field, the object that contains it, or a field that was sent with it."""
    pieces = {piece for piece in re.split(r"[^A-Za-z0-9_]+", path.partition("=")[0]) if piece not in ("list", "words")}
    pieces.update(beside, [_TODAY[piece] for piece in pieces if piece in _TODAY])
    return not pieces.isdisjoint(re.split(r"[^A-Za-z0-9_]+", message))


_SURFACES: Mapping[str, Surface] = {"chat": CHAT, "messages": MESSAGES, "responses": RESPONSES}


@lru_cache(maxsize=50_000)
def _send(fields: str, place: Place, surface: str) -> _Sent:
    subject = _subject(place)
    data = json.dumps({"model": subject.model, **json.loads(fields)}).encode()
    try:
        read = _SURFACES[surface].read(data)
        if read.untranslatable:
            return _Sent(refused=read.untranslatable[0])
        data, body = read.body, json.loads(read.body)
        decode_request(data)
        stream = bool(body.get("stream"))
        max_output = max_output_of(subject.provider, subject.model)
        request = ChatRequest(
            subject.model,
            stream,
            data,
            body,
            crosses_vendor=place.crosses_vendor,
            max_output=max_output,
            is_translated=read.is_translated,
            warnings=read.warnings,
        )
        request = request if subject.model.startswith(subject.adapter.traits.claude_blocks) else carried(request)
        upstream = _build(subject, request)
    except ValidationError as barred:
        return _Sent(barred=barred.message)
    except ProviderError as refused:
        return _Sent(refused=refused.message)
    except Exception as error:  # Any exception counts, since a crash of the adapter is one of the outcomes.
        return _Sent(broken=f"{type(error).__name__}: {error}")
    warnings = upstream.warnings + request.warnings
    return _Sent(json.loads(upstream.body), (upstream.url, *_headers(upstream)), warnings)


def _build(subject: Subject, request: ChatRequest) -> UpstreamRequest:
    needs = subject.adapter.needs(request, subject.credentials)
    fetched = structs.replace(
        request,
        media={url: _fetched(url) for url in needs.media},
        access_token="ya29.token" if needs.access_token else "",
    )
    return subject.adapter.build_request(fetched, subject.credentials)


def _headers(upstream: UpstreamRequest) -> Iterator[str]:
    """Yields the headers without those that are signed anew for each request."""
    for name, value in sorted(upstream.headers.items()):
        if name not in ("authorization", "x-amz-date", "x-amz-content-sha256", "content-length"):
            yield f"{name}: {value}"


def _fetched(url: str) -> Media:
    """Returns a different file for each address."""
    return Media("application/pdf", PDF + url.encode()) if ".pdf" in url else Media("image/png", PNG + url.encode())


@lru_cache
def _subject(place: Place) -> Subject:
    subject = subject_of(place.provider)
    return replace(subject, model=place.model) if place.model else subject


def _head(before: _Sent, after: _Sent) -> Iterator[str]:
    for line in after.head:
        if line not in before.head:
            yield "header " + line.partition(":")[0] if not line.startswith("http") else "the address"


def _differences(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """Yields the places at which two bodies differ; a part that only one of them has is named by its outermost
    field."""
    if before == after:
        return
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in [*after, *(name for name in before if name not in after)]:
            inner = f"{path}.{name}" if path else str(name)
            if name not in before or name not in after:
                yield inner
            else:
                yield from _differences(before[name], after[name], inner)
    elif isinstance(before, list) and isinstance(after, list):
        for one, other in zip(before, after, strict=False):
            yield from _differences(one, other, path + "[]")
        for extra in [*after[len(before) :], *before[len(after) :]]:
            yield f"{path}[]" if not isinstance(extra, Mapping) else f"{path}[]{_kind(extra)}"
    else:
        yield path


def _kind(item: Json | Mapping[str, Any]) -> str:
    return f" ({item['type']})" if isinstance(item.get("type"), str) else ""
