from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl
from uuid import UUID

import pytest
from django.test import Client
from rest_framework.test import APIClient

from analytics.models import Feedback
from analytics.request_log.record import Outcome
from analytics.scores.services import record_feedback
from analytics.scores.sync.run import copy_due
from core.models import Project
from core.roles import Role
from core.ui.formats import money, number
from tests.analytics.requests.entries import chat
from tests.analytics.sessions.entries import entry
from tests.analytics.sessions.test_transcript import store_conversation
from tests.analytics.telemetry.sending import Sender, log, span
from tests.console.pages import text_of
from tests.console.requests.test_detail import signed_in
from tests.factories.analytics import store
from tests.factories.core import make_key

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

LIST = "/admin/analytics/sessions/"


@pytest.fixture
def sender(project: Project) -> Sender:
    return Sender(make_key(project, scopes=["gateway"])[1])


def listed(client: Client, project: Project, **query: str) -> tuple[list[str], str]:
    shown = text_of(client.get(LIST, {"project": str(project.pk), **query}))
    ids = re.findall(r'<a class="row-link" href="[^"]*">([^<]*)</a>', shown)
    following = re.search(r'rel="next" href="([^"]*)"', shown)
    return ids, following[1].replace("&amp;", "&") if following else ""


def neighbours(client: Client, address: str) -> tuple[list[str], str, str]:
    shown = text_of(client.get(LIST + address))
    ids = re.findall(r'<a class="row-link" href="[^"]*">([^<]*)</a>', shown)
    found = [re.search(rf'rel="{name}" href="([^"]*)"', shown) for name in ("next", "prev")]
    onward, back = (one[1].replace("&amp;", "&") if one else "" for one in found)
    return ids, onward, back


def page(project: Project, session: str, role: Role = Role.ADMINISTRATOR, **query: str) -> str:
    return text_of(signed_in(project, role).get(f"{LIST}{project.pk}/{session}", query))


def test_sessions__many__all_by_cursors_the_latest_first(project: Project, spool: Path) -> None:
    store(spool, *(entry(project, f"s{number:03d}", number / 10) for number in range(120)))
    client = signed_in(project)

    pages, address = [], f"?project={project.pk}"
    while address:
        ids, address, back = neighbours(client, address)
        pages.append(ids)
    assert [session for ids in pages for session in ids] == [f"s{number:03d}" for number in range(120)]

    returned = [pages[-1]]
    while back:
        ids, onward, back = neighbours(client, back)
        returned.append(ids)
        assert onward
    assert returned == pages[::-1]


def test_sessions__filters__user_beginning_cost_and_feedback(project: Project, spool: Path) -> None:
    store(
        spool,
        entry(project, "a_1", 5, user_id="ann", cost_usd="0.5000000000"),
        entry(project, "a_1", 4, user_id="ann", cost_usd="0.6000000000"),
        entry(project, "ab1", 3, user_id="bob", cost_usd="0.0100000000"),
        entry(project, "c", 2),
    )
    record_feedback(project_id=project.pk, session_id="c", score=1, text="", actor="user:x")
    copy_due()
    client = signed_in(project)

    def names(**query: str) -> list[str]:
        return listed(client, project, **query)[0]

    assert names() == ["c", "ab1", "a_1"]
    assert names(user_id="ann") == ["a_1"]
    assert names(session="a_") == ["a_1"]
    assert names(name_pattern="a%") == ["ab1", "a_1"]
    assert names(contains="_1") == ["a_1"]
    assert names(session="a", contains="1") == ["ab1", "a_1"]
    assert names(min_cost_usd="1") == ["a_1"]
    assert names(max_cost_usd="1") == ["c", "ab1"]
    assert names(feedback="bad") == ["c"]
    assert names(feedback="good") == []


def test_sessions__slowest_and_most_errors__found_by_a_click_on_the_column(project: Project, spool: Path) -> None:
    store(
        spool,
        *(entry(project, "long", minutes) for minutes in (1, 50)),
        entry(project, "failing", 3, outcome=Outcome.ERROR, status_code=500),
        entry(project, "short", 2),
    )
    client = signed_in(project)

    shown = text_of(client.get(LIST, {"project": str(project.pk)}))
    by_column = {
        name: re.search(rf'<a href="([^"]*)">{name}</a></th>', shown)[1].replace("&amp;", "&")  # type: ignore[index]
        for name in ("Lasted", "Requests", "Errors", "Tokens", "Cost", "Feedback")
    }

    assert neighbours(client, by_column["Lasted"])[0][0] == "long"
    assert neighbours(client, by_column["Errors"])[0][0] == "failing"
    assert listed(client, project, min_duration_seconds="60")[0] == ["long"]
    assert listed(client, project, min_error_count="1")[0] == ["failing"]


def test_session__more_requests_than_one_page_shows__later_ones_and_the_slowest_by_a_click(
    api: APIClient, project: Project, spool: Path
) -> None:
    slow = entry(project, "s", 1, latency_ms=777_000)
    store(spool, *(entry(project, "s", 300 - number, latency_ms=10) for number in range(230)), slow)

    first = page(project, "s")
    assert "the session has more" in first
    later = re.search(r'<a href="([^"]*)">Later requests</a>', first)
    assert later
    slowest = first.partition("Slowest requests")[2].partition("</ol>")[0]
    assert re.findall(r">([^<]*)</a>", slowest)[0] == "12 min 57 s"
    assert f"{slow.record.request_id}" in slowest

    query = dict(parse_qsl(later[1].replace("&amp;", "&").partition("#")[0].lstrip("?")))
    second = page(project, "s", **query)
    assert "Later requests" not in second
    assert "From the start" in second
    assert slow.record.request_id in second.partition('id="panel-timeline"')[2].partition("Slowest requests")[2]

    nodes = api.get("/api/llm/sessions/s/timeline").json()
    assert nodes["next_offset"] == 200
    rest = api.get("/api/llm/sessions/s/timeline", {"offset": 200}).json()
    assert rest["next_offset"] is None
    ids = [{node["request_id"] for node in one["nodes"] if node["kind"] == "request"} for one in (nodes, rest)]
    assert len(ids[1]) == 31
    assert slow.record.request_id in ids[1]


def test_sessions__bad_filter__named_in_the_page(project: Project) -> None:
    shown = text_of(signed_in(project).get(LIST, {"project": str(project.pk), "min_cost_usd": "many"}))

    assert "min_cost_usd: A valid number is required." in shown


def test_sessions__row__figures_of_the_api(api: APIClient, project: Project, spool: Path) -> None:
    store(spool, entry(project, "s", 5, outcome=Outcome.ERROR, status_code=500), entry(project, "s", 4))

    shown = text_of(signed_in(project).get(LIST, {"project": str(project.pk)}))

    [found] = api.get("/api/llm/sessions").json()["results"]
    assert money(Decimal(str(found["total_cost_usd"]))) in shown
    assert number(found["total_tokens"]) in shown
    assert '<span class="bad-text">1</span>' in shown


def test_session__conversation__each_turn_once_and_figures_of_the_api(
    api: APIClient, project: Project, spool: Path
) -> None:
    texts = store_conversation(project, spool, 4)

    shown = page(project, "chat")

    turns = re.findall(r'<div class="turn-text">([^<]*)</div>', shown)
    assert turns == texts
    found = api.get("/api/llm/sessions/chat").json()
    assert f"<strong>{number(found['total_tokens'])}</strong>" in shown
    assert f"<strong>{money(found['total_cost_usd'])}</strong>" in shown


def test_session__trace_and_logs__spans_requests_and_details(
    api: APIClient, project: Project, spool: Path, sender: Sender
) -> None:
    sender.traces(span(1), span(2, parent_span_id=(1).to_bytes(8, "big")))
    sender.logs(log(1))
    made = entry(project, "s-1", 5)
    store(spool, made)

    shown = page(project, "s-1")

    nodes = api.get("/api/llm/sessions/s-1/timeline").json()["nodes"]
    assert f"{len(nodes)} spans and requests" in shown
    assert "span 2" in shown
    assert "line 1" in shown
    [chosen] = [node for node in nodes if node["kind"] == "request"]
    assert f'data-id="{made.record.request_id}"' in page(project, "s-1", span=chosen["id"])


def test_session__that_only_spans_name__its_trace(project: Project, sender: Sender) -> None:
    sender.traces(span(1, {}), span(2, {"session.id": "app-7"}))

    shown = page(project, "app-7")

    assert "2 spans and requests" in shown
    assert "01" * 16 in shown
    assert shown.count("No request names this session") == 2


def test_session__log_of_one_of_its_traces__among_its_logs(project: Project, spool: Path, sender: Sender) -> None:
    store(spool, entry(project, "s-1", 5, trace_id="ab" * 16, parent_span_id="cd" * 8))
    sender.logs(log(1, {}, trace_id=b"\xab" * 16), log(2, {}, trace_id=b"\xcd" * 16), log(3, {"session.id": "s-1"}))
    sender.traces(span(1, {"session.id": "s-1"}))
    sender.logs(log(4, {}, trace_id=b"\x01" * 16))

    shown = page(project, "s-1")

    assert [line for line in ("line 1", "line 2", "line 3", "line 4") if line in shown] == ["line 1", "line 4"]


def test_session__reader_without_content__no_texts(project: Project, spool: Path, sender: Sender) -> None:
    store_conversation(project, spool, 1)
    sender.logs(log(1, attributes={"gen_ai.session_id": "chat"}))
    record_feedback(project_id=project.pk, session_id="chat", score=4, text="marzipan", actor="user:x")

    shown = page(project, "chat", Role.READER_WITHOUT_CONTENT)

    assert "turn-text" not in shown
    assert "line 1" not in shown
    assert "marzipan" not in shown
    assert "4 of 5" in shown


def test_session__id_with_slashes_and_signs__found(project: Project, spool: Path) -> None:
    session = "a/b c?d#e%2F"
    store(spool, entry(project, session, 5))
    client = signed_in(project)
    shown = text_of(client.get(LIST, {"project": str(project.pk)}))
    [address] = re.findall(r'<a class="row-link" href="([^"]*)"', shown)

    beside = text_of(client.get(LIST + address.replace("&amp;", "&")))
    [whole] = re.findall(r'href="([^"]*)">Open the session', beside)
    opened = text_of(client.get(whole.replace("&amp;", "&")))

    assert "There is no such session" not in opened
    assert f"<dd>{session}</dd>" in opened


def test_peek__session_of_the_list__figures_and_latest_requests(project: Project, spool: Path) -> None:
    store(spool, entry(project, "s1", 5, **chat("marzipan?", "yes")), entry(project, "s2", 6, **chat("nougat?", "yes")))
    query = {"project": str(project.pk), "peek": "s1"}

    text = text_of(signed_in(project).get(LIST, query))
    without_texts = text_of(signed_in(project, Role.READER_WITHOUT_CONTENT).get(LIST, query))
    gone = text_of(signed_in(project).get(LIST, {**query, "peek": "nothing"}))

    assert "marzipan?" in text and "nougat?" not in text
    assert 'tr aria-current="true"' in text
    assert "marzipan?" not in without_texts and "Open the session" in without_texts
    assert "This session is not in the log any more" in gone


def test_feedback__given_on_the_page__stored(project: Project, spool: Path) -> None:
    client = signed_in(project, Role.EDITOR)
    address = f"{LIST}{project.pk}/chat"

    assert client.post(address, {"score": "4", "text": "fine"}).status_code == 302
    refused = text_of(client.post(address, {"score": "", "text": ""}))

    row = Feedback.objects.get(session_id="chat")
    assert (row.score, row.text) == (4, "fine")
    assert "Give a score, a text or both." in refused
    assert signed_in(project, Role.READER).post(address, {"score": "4"}).status_code == 403


def test_feedback__on_one_answer__beside_it_and_linked(project: Project, spool: Path) -> None:
    first, second = (
        entry(project, "chat", 5, **chat("one?", "two")),
        entry(project, "chat", 4, **chat("three?", "four")),
    )
    store(spool, first, second)
    request_id = UUID(first.record.request_id)
    record_feedback(
        project_id=project.pk, session_id="chat", score=2, text="marzipan", actor="user:x", request_id=request_id
    )

    shown = page(project, "chat")
    hidden = page(project, "chat", Role.READER_WITHOUT_CONTENT)

    assert shown.count("marzipan") == 2
    assert shown.count('aria-label="Feedback on this answer"') == 1
    assert shown.index("two") < shown.index('aria-label="Feedback on this answer"') < shown.index("three?")
    assert re.search(rf'about <a href="[^"]*{request_id}[^"]*">one answer</a>', shown)
    assert "marzipan" not in hidden and "one answer" in hidden


def test_session__deleted__gone(api: APIClient, project: Project, spool: Path) -> None:
    store_conversation(project, spool, 1)
    address = f"{LIST}{project.pk}/chat"

    assert signed_in(project, Role.EDITOR).post(address, {"action": "delete"}).status_code == 403
    assert signed_in(project).post(address, {"action": "delete"}).status_code == 302

    assert api.get("/api/llm/sessions/chat").status_code == 404


def test_session__long_conversation__page_below_150_kilobytes(project: Project, spool: Path) -> None:
    messages: list[dict[str, Any]] = []
    made = []
    for place in range(24):
        messages += [{"role": "user", "content": f"{place} " + "long " * 2_000}]
        call = entry(project, "long", 100 - place)
        body = json.dumps({"messages": messages}).encode()
        answer = json.dumps({"choices": [{"message": {"role": "assistant", "content": f"{place} " + "so " * 2_000}}]})
        made.append(type(call)(call.record, body, answer.encode()))
        messages += [{"role": "assistant", "content": f"{place} " + "so " * 2_000}]
    store(spool, *made)

    shown = page(project, "long")

    assert len(shown.encode()) < 150_000
    assert shown.count('class="call"') == 24


def test_session__unknown__404_with_frame_and_message(project: Project) -> None:
    answer = signed_in(project).get(f"{LIST}{project.pk}/nobody's")

    assert answer.status_code == 404
    opened = b"".join(answer.streaming_content).decode()  # type: ignore[attr-defined]
    assert "There is no such session in this project." in opened and 'id="navigation"' in opened
