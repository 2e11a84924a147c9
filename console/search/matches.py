"""The records that a text names by an id, looked up without keeping the search page waiting for a store that hangs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from analytics.parameters.requests import MAXIMUM_QUERY
from analytics.presenters.search import lookup
from analytics.queries import visible
from analytics.wire.search import LookupMatch
from core.errors import ApplicationError
from core.lookup.registry import Kind
from core.rights.asking import rights_in
from core.ui import panels
from core.ui.pages import Visit

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
    """The records of a visit's project that `text` names; the store is asked in a thread from the beginning on."""

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
        """Returns the address of the one record that the text names; empty if it names none or several, if the person
        may not open its page, or if the store has not answered soon."""
        try:
            found = self.all(panels.FIRST_BYTE_SECONDS)
        except (TimeoutError, ApplicationError):
            return ""
        return found[0]["href"] if len(found) == 1 else ""

    def all(self, seconds: float | None = None) -> Sequence[Mapping[str, str]]:
        """Returns kind, label and address of each record. Raises TimeoutError when the time is over, and the errors of
        the store."""
        found = [*self._of_the_store.result(seconds)["results"], *self._of_the_database]
        return [
            {"kind": _LABELS[one["kind"]], "label": one["label"], "href": _address(self._visit, one)} for one in found
        ]


def _address(visit: Visit, match: LookupMatch) -> str:
    """Returns the address of the page of a record, or of its requests; empty if the person may open neither."""
    project_id, identity = visit.project.pk, match["id"]
    match match["kind"]:
        case Kind.REQUEST:
            return visit.link("analytics_requests_detail", project_id, identity)
        case Kind.SESSION:
            page = visit.link_if_there("session", project_id, identity)
            return page or visit.link(_LOG, session_id=identity)
        case Kind.USER:
            return visit.link(_LOG, user_id=identity)
        case Kind.API_KEY:
            return visit.link_if_there("core_apikey_change", identity) or visit.link(_LOG, api_key_id=identity)
        case Kind.PROMPT:
            page = visit.link_if_there("prompt", identity)
            return page or visit.link_if_there("prompts_promptconfig_change", identity)
        case Kind.ROLLOUT:
            return visit.link_if_there("rollouts_rollout_change", identity)
