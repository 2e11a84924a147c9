from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.http.response import HttpResponseBase

from analytics.deletion.services import delete_request
from analytics.discussions.subject import Subject, subject_request
from analytics.presenters.timelines import neighbours_of
from analytics.queries import visible
from analytics.queries.requests import Payload, RequestRow, get_request_time
from analytics.scores import services
from analytics.telemetry.operation_names import operation_names
from analytics.wire.attempts import AttemptEntry
from analytics.wire.conversations import TextBounds, request_conversation
from analytics.wire.requests import RequestDetail
from console.discussions.actions import DiscussedPage
from console.discussions.panel import assignment_context
from console.requests.detail.links import facts, tiles
from console.requests.detail.queue import add_to_queue, queue_context
from console.requests.detail.record import Record
from console.requests.detail.score_form import ScoreForm
from console.requests.detail.short_link import short_address
from core.http.addresses import public_url
from core.roles import Right
from core.ui.pages import Visit
from core.ui.panels import Panel
from core.ui.plots import Span, Waterfall
from core.ui.tables import page_link
from integrations.registry import provider_title

# A page stays below 150 KB of HTML unless everything is asked for.
_BOUNDS, _ALL_BOUNDS = (2_000, 40_000), (200_000, 2_000_000)
_RAW_CHARACTERS, _ALL_RAW_CHARACTERS = 8_000, 4_000_000
_ALL = "all"


# A longer body would make the page too large; its command is shown with all texts.
MAX_CHARACTERS = 20_000


def attempts_waterfall(found: RequestDetail) -> Waterfall | None:
    """Returns None if no provider was called."""
    attempts = found["attempt_timeline"]
    if not attempts:
        return None
    start = found["created_at"]
    whole = Span("request", None, "request", start, _after(start, found["latency_ms"]), detail=found["outcome"])
    spans = [span for attempt in attempts for span in _spans(start, attempt)]
    return Waterfall("Attempts", [whole, *spans], caption=False)


def _spans(start: datetime, attempt: AttemptEntry) -> Iterator[Span]:
    key = f"attempt-{attempt['number']}"
    began, ended = _after(start, attempt["started_ms"]), _after(start, attempt["ended_ms"])
    result = attempt["error"] or "answered"
    status = f" {attempt['status']}" if attempt["status"] else ""
    name = f"{provider_title(attempt['provider'])} {attempt['model']}"
    yield Span(key, "request", name, began, ended, "bad" if attempt["error"] else "", detail=f"{result}{status}")
    first_token = attempt["first_token_ms"]
    if first_token is not None:
        token_at = min(max(_after(start, first_token), began), ended)
        yield Span(f"{key}-wait", key, "until the first token", began, token_at)
        yield Span(f"{key}-stream", key, "the rest of the stream", token_at, ended)


def _after(start: datetime, milliseconds: float) -> datetime:
    return start + timedelta(milliseconds=milliseconds)


def curl_command(row: RequestRow, payload: Payload | None, max_characters: int) -> str:
    """Returns an empty text if the body is not stored, too long or not JSON."""
    body = payload.request if payload else ""
    if not body.startswith("{") or len(body) > max_characters:
        return ""
    lines = [
        f"curl {shlex.quote(public_url() + operation_names(row.operation).route)}",
        '-H "Authorization: Bearer $KEY"',
        "-H 'Content-Type: application/json'",
        *_identity(row),
        f"-d {shlex.quote(body)}",
    ]
    return " \\\n  ".join(lines)


def _identity(row: RequestRow) -> list[str]:
    named = {"x-svc-session-id": row.session_id, "x-svc-user-id": row.user_id}
    return [f"-H {shlex.quote(f'{name}: {value}')}" for name, value in named.items() if value]


class RequestPage(DiscussedPage[UUID, ScoreForm]):
    name = "analytics_requests_detail"
    route = "analytics/requests/<uuid:project_id>/<uuid:request_id>/"
    parent = "analytics_requests_changelist"
    title = "Request"
    saves = ("", "score")

    def __init__(self) -> None:
        super().__init__()
        self._form = ScoreForm()

    def record(self, visit: Visit, **route: Any) -> UUID:
        request_id: UUID = route["request_id"]
        return request_id

    def subject(self, record: UUID) -> Subject:
        return subject_request(record)

    def form(self, visit: Visit, record: UUID, data: Any = None) -> ScoreForm:
        self._form = ScoreForm(data)
        return self._form

    def shown(self, visit: Visit, record: UUID, form: ScoreForm) -> Mapping[str, Any]:
        playground = visit.link_if_there("gateway_playground_changelist", request=record)
        return {
            "title": f"Request {str(record)[:13]}…",
            "playground": playground if visit.sees_content else "",
            "may_delete": visit.may(Right.ADMINISTER),
            "short_address": short_address(visit, record),
            **assignment_context(visit, subject_request(record)),
            **queue_context(visit),
            "evaluators": visit.link_if_there("evaluators", request_id=record) if visit.may(Right.EDIT) else "",
            "dataset": visit.link_if_there("datasets", request_id=record) if visit.may(Right.EDIT) else "",
        }

    def existence(self, visit: Visit, **route: Any) -> Callable[[], bool]:
        return partial(visible.looked_up(visit.project.pk).run, _is_stored, visit.project.pk, route["request_id"])

    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        request_id = self.record(visit, **route)
        record = Record(visit.project.pk, request_id, sees_content=visit.sees_content)
        query = visit.request.GET
        show_all = _ALL in query
        shared = {
            "request_id": request_id,
            "all_url": page_link(query, **{_ALL: "1"}),
            "image_base": visit.request.path + "images/",
            "show_all": show_all,
        }

        def beside() -> Mapping[str, Any]:
            found = neighbours_of(visit.project.pk, record.row)
            return {
                "session_id": found["session_id"],
                "previous": self._address(visit, found["previous"]),
                "next": self._address(visit, found["next"]),
            }

        def summary() -> Mapping[str, Any]:
            found = record.detail()
            return {
                "found": found,
                "tiles": tiles(found),
                "facts": list(facts(visit, found)),
                "attempts": found["attempt_timeline"],
                "waterfall": attempts_waterfall(found),
            }

        def scores() -> Mapping[str, Any]:
            found = record.detail()
            return {
                **shared,
                "scores": found["scores"],
                "feedback": found["feedback"],
                "form": self._form,
                "may_score": visit.may(Right.EDIT),
            }

        def conversation() -> Mapping[str, Any]:
            bounds = TextBounds(*(_ALL_BOUNDS if show_all else _BOUNDS))
            return {**shared, "conversation": request_conversation(record.payload, bounds)}

        def raw() -> Mapping[str, Any]:
            return {**shared, **_raw(record, show_all=show_all)}

        return [
            Panel("beside", "Requests beside this one", "requests/detail/beside.html", beside),
            Panel("summary", "What happened", "requests/detail/summary.html", summary, is_wide=True),
            Panel("conversation", "Conversation", "requests/detail/conversation.html", conversation),
            Panel("scores", "Scores", "requests/detail/scores.html", scores),
            self.discussion(visit, request_id),
            Panel("raw", "As it was stored", "requests/detail/raw.html", raw, is_wide=True),
        ]

    def _address(self, visit: Visit, request_id: UUID | None) -> str:
        return visit.link(self.name, visit.project.pk, request_id) if request_id else ""

    def save(self, visit: Visit, record: UUID, form: ScoreForm) -> HttpResponseBase:
        services.record_score(project_id=visit.project.pk, score=form.score(str(record)), actor=visit.actor)
        return visit.done("The score is recorded.", self.address(visit, record) + "#panel-scores")

    def do_queue(self, visit: Visit, record: UUID) -> HttpResponseBase:
        return visit.done(add_to_queue(visit, record), self.address(visit, record))

    def do_delete(self, visit: Visit, record: UUID) -> HttpResponseBase:
        visit.require(Right.ADMINISTER)
        delete_request(visit.project.pk, record, actor=visit.actor)
        return visit.done("The request is deleted.", visit.link(self.parent))


def _is_stored(project_id: UUID, request_id: UUID) -> bool:
    return get_request_time(project_id, request_id) is not None


def _raw(record: Record, *, show_all: bool) -> Mapping[str, Any]:
    limit = _ALL_RAW_CHARACTERS if show_all else _RAW_CHARACTERS
    payload, row = record.payload, record.row
    return {
        "curl": curl_command(row, payload, _ALL_RAW_CHARACTERS if show_all else MAX_CHARACTERS),
        "attributes": record.detail()["attributes"],
        "bodies": [
            ("Request", payload.request[:limit], len(payload.request)),
            ("Response", payload.response[:limit], len(payload.response)),
        ]
        if payload
        else [],
    }
