"""The header's search: an id leads to its record; any other text is searched in the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from django.http import HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from rest_framework.exceptions import ValidationError

from analytics.parameters.requests import MAXIMUM_QUERY, SearchBody
from analytics.presenters.requests import lookup, search_texts
from analytics.queries import visible
from analytics.wire.search import LookupMatch, SearchResult
from console.search.palette import palette
from core.errors import ApplicationError
from core.lookup.registry import Kind
from core.rights.asking import rights_in
from core.ui import panels
from core.ui.filters import FilterField, Filters
from core.ui.pages import Page, Visit
from core.ui.panels import Panel
from core.ui.tables import page_link

_LIMIT = 20
_PALETTE = "palette"
_FIELDS = (FilterField("user_id", "User"), FilterField("session_id", "Session"), FilterField("model", "Model"))


_OF_THE_STORE = (Kind.REQUEST, Kind.SESSION, Kind.USER)
_OF_THE_DATABASE = tuple(kind for kind in Kind if kind not in _OF_THE_STORE)
_LOG = "analytics_requests_changelist"
_LABELS: Mapping[Kind, str] = {
    Kind.REQUEST: "Request",
    Kind.SESSION: "Session",
    Kind.USER: "User",
    Kind.API_KEY: "API key",
    Kind.PROMPT: "Prompt",
    Kind.ROLLOUT: "Rollout",
}


class Matches:
    """The project's records that `text` names. A thread asks the store from construction on."""

    def __init__(self, visit: Visit, text: str) -> None:
        self._visit = visit
        project_id, rights = visit.project.pk, rights_in(visit.person, visit.project.pk)
        may_be_id = len(text) <= MAXIMUM_QUERY and "\x00" not in text
        ask = partial(lookup, project_id, text if may_be_id else "", rights)
        # The thread does not use the SQL database, so it is given what the store has to leave out.
        context = visible.looked_up(project_id)
        self._of_the_store = panels.in_thread(partial(context.run, ask, _OF_THE_STORE))
        self._of_the_database = ask(_OF_THE_DATABASE)["results"]

    def single_address(self) -> str:
        """Returns the address of the only match; empty if there is none or several, the person may not open it, or the
        store is slow."""
        try:
            found = self.all(panels.FIRST_BYTE_SECONDS)
        except (TimeoutError, ApplicationError):
            return ""
        return found[0]["href"] if len(found) == 1 else ""

    def all(self, seconds: float | None = None) -> Sequence[Mapping[str, str]]:
        """Returns kind, label and address of each record. Raises TimeoutError after `seconds`, and the errors of the
        store."""
        found = [*self._of_the_store.result(seconds)["results"], *self._of_the_database]
        return [
            {"kind": _LABELS[one["kind"]], "label": one["label"], "href": _address(self._visit, one)} for one in found
        ]


def _address(visit: Visit, match: LookupMatch) -> str:
    project_id, identity = visit.project.pk, match["id"]
    match match["kind"]:
        case Kind.REQUEST:
            return visit.link("analytics_requests_detail", project_id, identity)
        case Kind.SESSION:
            page = visit.link_if_there("session", project_id, identity)
            return page or visit.link(_LOG, session_id=identity)
        case Kind.USER:
            return visit.link("user", project_id, identity)
        case Kind.API_KEY:
            return visit.link_if_there("core_apikey_change", identity) or visit.link(_LOG, api_key_id=identity)
        case Kind.PROMPT:
            page = visit.link_if_there("prompt", identity)
            return page or visit.link_if_there("prompts_promptconfig_change", identity)
        case Kind.ROLLOUT:
            return visit.link_if_there("rollouts_rollout_change", identity)


class SearchPage(Page):
    name = "search"
    route = "search/"
    title = "Search"

    def _page(self, visit: Visit, route: Mapping[str, Any]) -> HttpResponseBase:
        if "panel" in visit.request.GET or not _text(visit):
            return super()._page(visit, route)
        matches = Matches(visit, _text(visit))
        address = matches.single_address()
        if address:
            return HttpResponseRedirect(address)
        return self.render(visit, _panels(visit, matches), **self.context(visit, **route))

    def context(self, visit: Visit, **route: Any) -> Mapping[str, Any]:
        return {
            "text": _text(visit),
            "search_text": _text(visit),
            "sees_content": visit.sees_content,
            "filters": Filters(_FIELDS, visit.request.GET),
        }

    def panels(self, visit: Visit, **route: Any) -> Sequence[Panel]:
        text = _text(visit)
        if panels.panel_name(visit.request) == _PALETTE:
            records = partial(Matches(visit, text).all, panels.FIRST_BYTE_SECONDS)
            return [Panel(_PALETTE, "Found", "search/palette.html", partial(palette, visit, text, records))]
        return _panels(visit, Matches(visit, text)) if text else ()


def _panels(visit: Visit, matches: Matches) -> Sequence[Panel]:
    named = Panel("named", "By id", "search/named.html", partial(_named, visit, matches), is_wide=True)
    if not visit.sees_content:
        return [named]
    return [
        named,
        Panel("texts", "In requests and answers", "search/texts.html", partial(_texts, visit), is_wide=True),
    ]


def _named(visit: Visit, matches: Matches) -> Mapping[str, Any]:
    return {"text": _text(visit), "matches": matches.all()}


def _text(visit: Visit) -> str:
    return visit.request.GET.get("q", "").strip()


def _texts(visit: Visit) -> Mapping[str, Any]:
    query, period = visit.request.GET, visit.period
    chosen = {field.name: query[field.name] for field in _FIELDS if query.get(field.name)}
    bounds = {"start_time": period.start.isoformat(), "end_time": period.end.isoformat()}
    try:
        filters, limit = SearchBody(
            data={"query": _text(visit), "limit": _LIMIT, **chosen, **bounds}
        ).to_filter_and_limit()
    except ValidationError as error:
        return {"refusal": " ".join(str(text) for texts in _detail(error).values() for text in texts)}
    found = search_texts(visit.project.pk, filters, limit)
    older = ""
    if found["has_more"] and found["results"]:
        end = found["results"][-1]["created_at"].isoformat().replace("+00:00", "Z")
        older = page_link(query, range="custom", start=period.start.isoformat().replace("+00:00", "Z"), end=end)
    return {
        "results": [_result(visit, result) for result in found["results"]],
        "searched_since": found["searched_since"],
        "older": older,
        "month": "" if period.name == "30d" else page_link(query, range="30d", start="", end=""),
    }


def _detail(error: ValidationError) -> Mapping[str, Sequence[Any]]:
    found: Any = error.detail
    return found if isinstance(found, dict) else {"": found}


def _result(visit: Visit, result: SearchResult) -> Mapping[str, Any]:
    session_id = result["session_id"]
    session = visit.link_if_there("session", visit.project.pk, session_id) if session_id else ""
    return {
        "entry": result,
        "href": visit.link("analytics_requests_detail", visit.project.pk, result["request_id"]),
        "session": session or visit.link(_LOG, session_id=session_id),
        "user": visit.link_if_there("user", visit.project.pk, result["user_id"]),
        "prompt": _marked(result["prompt_preview"] or "", result["prompt_highlights"]),
        "completion": _marked(result["completion_preview"] or "", result["completion_highlights"]),
    }


def _marked(text: str, places: Sequence[tuple[int, int]]) -> SafeString:
    """Escapes the text and marks its [start, end) places."""
    pieces, done = [], 0
    for start, end in sorted(places):
        if start < done:
            continue
        pieces.append((text[done:start], text[start:end]))
        done = end
    marked = format_html_join("", "{}<mark>{}</mark>", pieces)
    return marked + format_html_join("", "{}", [(text[done:],)])
