from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from django import forms
from django.http import Http404
from django.http.response import HttpResponseBase

from analytics.deletion.services import delete_session
from analytics.discussions.subject import Subject, subject_session
from analytics.models import FEEDBACK_CHARACTERS, MAX_FEEDBACK, MIN_FEEDBACK, SESSION_ID_CHARACTERS
from analytics.presenters import sessions, timelines
from analytics.presenters.sessions import transcript
from analytics.queries import visible
from analytics.queries.lookup import find_session
from analytics.queries.request_cursor import parse_cursor
from analytics.queries.traces import has_traces
from analytics.scores import services
from analytics.wire.conversations import TextBounds
from analytics.wire.feedback import FeedbackEntry
from analytics.wire.texts import lists_without_texts
from console.discussions.actions import DiscussedPage
from console.discussions.panel import assignment_context
from console.sessions.facts import session_facts, session_tiles
from console.sessions.timeline import timeline_context
from core.errors import NotFoundError
from core.roles import Right
from core.ui.pages import Visit
from core.ui.panels import Panel
from core.ui.tables import page_link

Found = TypeVar("Found")

_BOUNDS = 1_500, 36_000
_MAX_LOGS, _MAX_FEEDBACK = 100, 20


_SCORES = [("", "no score"), *((str(score), str(score)) for score in range(MIN_FEEDBACK, MAX_FEEDBACK + 1))]


class FeedbackForm(forms.Form):
    score = forms.TypedChoiceField(
        label="Score, 5 is best", choices=_SCORES, required=False, coerce=int, empty_value=None
    )
    text = forms.CharField(
        label="What you say about it",
        required=False,
        max_length=FEEDBACK_CHARACTERS,
        widget=forms.Textarea(attrs={"rows": 2}),
    )

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or {}
        if not self.errors and given.get("score") is None and not given.get("text"):
            self.add_error("score", "Give a score, a text or both.")
        return given


class SessionPage(DiscussedPage[str, FeedbackForm]):
    name = "session"
    # Ids of sessions are the client's own and may hold slashes, so nothing follows them.
    route = "analytics/sessions/<uuid:project_id>/<slashed:session_id>"
    parent = "sessions"
    title = "Session"

    def __init__(self) -> None:
        super().__init__()
        self._form = FeedbackForm()

    def record(self, visit: Visit, **route: Any) -> str:
        return str(route["session_id"])

    def subject(self, record: str) -> Subject:
        return subject_session(record)

    def form(self, visit: Visit, record: str, data: Any = None) -> FeedbackForm:
        self._form = FeedbackForm(data)
        return self._form

    def shown(self, visit: Visit, record: str, form: FeedbackForm) -> Mapping[str, Any]:
        return {
            "subtitle": record[:200],
            "log_url": visit.link_if_there("analytics_requests_changelist", session_id=record),
            "may_delete": visit.may(Right.ADMINISTER),
            **assignment_context(visit, subject_session(record)),
        }

    def existence(self, visit: Visit, **route: Any) -> Callable[[], bool]:
        return partial(visible.looked_up(visit.project.pk).run, _is_stored, visit.project.pk, route["session_id"])

    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        project_id, session_id = visit.project.pk, self.record(visit, **route)
        if len(session_id) > SESSION_ID_CHARACTERS or "\x00" in session_id:
            raise Http404("There is no such session.")

        def summary() -> Mapping[str, Any]:
            found = _asked(sessions.session, project_id, session_id)
            shown: Any = found if visit.sees_content else lists_without_texts(found)
            return {"found": shown, "tiles": session_tiles(shown), "facts": session_facts(visit, shown)}

        def feedback() -> Mapping[str, Any]:
            given = sessions.feedback(project_id, session_id)
            shown: Sequence[Any] = given if visit.sees_content else [{**item, "text": None} for item in given]
            named = [(item, _address(visit, item["request_id"])) for item in shown[:_MAX_FEEDBACK]]
            return {"feedback": named, "form": self._form, "may_give": visit.may(Right.EDIT)}

        def conversation() -> Mapping[str, Any]:
            return _conversation(visit, session_id)

        def logs() -> Mapping[str, Any]:
            found = timelines.logs(project_id, session_id)
            shown = found if visit.sees_content else lists_without_texts({"logs": found})["logs"]
            return {"logs": shown[:_MAX_LOGS], "count": len(found)}

        return [
            Panel("summary", "Figures", "sessions/summary.html", summary, is_wide=True),
            Panel("transcript", "Conversation", "sessions/transcript.html", conversation),
            Panel("feedback", "Feedback", "sessions/feedback.html", feedback),
            self.discussion(visit, session_id),
            Panel(
                "timeline", "Trace", "sessions/timeline.html", lambda: timeline_context(visit, session_id),
                is_wide=True,
            ),
            Panel("logs", "Logs", "sessions/logs.html", logs, is_wide=True),
        ]  # fmt: skip

    def save(self, visit: Visit, record: str, form: FeedbackForm) -> HttpResponseBase:
        services.record_feedback(project_id=visit.project.pk, session_id=record, actor=visit.actor, **form.cleaned_data)
        return visit.done("The feedback is recorded.", self.address(visit, record) + "#panel-feedback")

    def do_delete(self, visit: Visit, record: str) -> HttpResponseBase:
        visit.require(Right.ADMINISTER)
        delete_session(visit.project.pk, record, actor=visit.actor)
        return visit.done("The session is deleted.", visit.link(self.parent))


def _is_stored(project_id: UUID, session_id: str) -> bool:
    return bool(find_session(project_id, session_id)) or has_traces(project_id, session_id)


def _asked(read: Callable[[UUID, str], Found], project_id: UUID, session_id: str) -> Found:
    """Raises NotFoundError, with the reason if only spans and logs name the session."""
    try:
        return read(project_id, session_id)
    except NotFoundError:
        if not has_traces(project_id, session_id):
            raise
        raise NotFoundError("No request names this session: only spans and logs of applications do.") from None


def _conversation(visit: Visit, session_id: str) -> Mapping[str, Any]:
    if not visit.sees_content:
        return {"page": None}
    query = visit.request.GET
    after, bounds = parse_cursor(query.get("cursor", "")), TextBounds(*_BOUNDS)
    page = _asked(partial(transcript, after=after, bounds=bounds), visit.project.pk, session_id)
    said: defaultdict[str, list[FeedbackEntry]] = defaultdict(list)
    for item in sessions.feedback(visit.project.pk, session_id):
        said[str(item["request_id"])].append(item)
    return {
        "page": page,
        "entries": [
            (entry, _request_url(visit, entry["request_id"]), said[str(entry["request_id"])][:_MAX_FEEDBACK])
            for entry in page["results"]
        ],
        "next_url": page_link(query, cursor=page["next_cursor"] or "") + "#panel-transcript",
        "first_url": page_link(query, cursor="") + "#panel-transcript" if query.get("cursor") else "",
    }


def _address(visit: Visit, request_id: UUID | None) -> str:
    return "" if request_id is None else visit.link("analytics_requests_detail", visit.project.pk, request_id)


def _request_url(visit: Visit, request_id: Any) -> tuple[str, str]:
    return visit.link("analytics_requests_detail", visit.project.pk, request_id), visit.link(
        "analytics_requests_detail", visit.project.pk, request_id
    ).partition("?")[0]
