from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.test import Client
from rest_framework.test import APIClient

from analytics.clickhouse import client as store_client
from analytics.errors import AnalyticsUnavailableError
from analytics.models import Score
from analytics.request_log.record import AttemptRecord, Outcome, SpoolEntry
from analytics.scores.services import record_feedback
from core.http.addresses import public_url
from core.models import Project
from core.roles import Role
from core.ui.formats import money
from tests.analytics.conversation.test_bodies import PNG
from tests.console.pages import text_of
from tests.factories.analytics import make_entry, store
from tests.factories.core import make_staff
from tests.factories.reviews import make_queue
from tests.store_away import store_away

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

FAILED = AttemptRecord("openai", "gpt-4o", 503, "unavailable", 1200)
SERVED = AttemptRecord("anthropic", "claude", 200, "", 2400, 1000, 234, "0.0031", offset_us=1_250_000)
MESSAGES = [
    {"role": "user", "content": [
        {"type": "text", "text": "<script>alert(1)</script>"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
        {"type": "image_url", "image_url": {"url": "https://elsewhere.example/a.png"}},
    ]},
    {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "weather", "arguments": '{"city":"Oslo"}'}}]},
    {"role": "tool", "tool_call_id": "1", "content": "4 degrees"},
]  # fmt: skip
ANSWER = {"choices": [{"message": {"role": "assistant", "content": "It is 4 degrees."}}]}


def stored(spool: Path, project: Project, **values: Any) -> str:
    made = made_entry(project, **values)
    store(spool, made)
    return made.record.request_id


def made_entry(project: Project, **values: Any) -> SpoolEntry:
    defaults = {
        "attempts": (FAILED, SERVED), "latency_ms": 3650, "fallback_used": True, "cost_usd": "0.0031000000",
        "prompt_tokens": 1000, "completion_tokens": 234, "session_id": "chat/1", "user_id": "ann-7",
    }  # fmt: skip
    return make_entry(
        json.dumps({"model": "m", "messages": MESSAGES, "temperature": 0.5}).encode(),
        json.dumps(ANSWER).encode(),
        project_id=str(project.pk),
        **{**defaults, **values},
    )


def signed_in(project: Project, role: Role = Role.ADMINISTRATOR) -> Client:
    client = Client()
    client.force_login(make_staff(role, project))
    return client


def address(project: Project, request_id: str) -> str:
    return f"/admin/analytics/requests/{project.pk}/{request_id}/"


def page(project: Project, request_id: str, role: Role = Role.ADMINISTRATOR, **query: str) -> str:
    return text_of(signed_in(project, role).get(address(project, request_id), query))


def test_request__failover__one_sentence_attempts_and_figures_of_the_api(
    api: APIClient, project: Project, spool: Path
) -> None:
    request_id = stored(spool, project)

    shown = page(project, request_id)

    found = api.get(f"/api/llm/requests/{request_id}").json()
    assert found["summary"] == "openai answered 503 after 1.2 s, anthropic answered in 2.4 s; $0.0031, 1,234 tokens."
    assert "Openai answered 503 after 1.2 s, anthropic answered in 2.4 s; $0.0031, 1,234 tokens." in shown
    assert money(found["cost_usd"]) == "$0.0031"
    assert "1,000 in, 234 out" in shown


def test_request__conversation__turns_with_folded_tools_and_escaped_texts(project: Project, spool: Path) -> None:
    request_id = stored(spool, project)

    shown = page(project, request_id)

    assert "<script>alert" not in shown
    assert "&lt;script&gt;alert(1)" in shown
    assert "Calls <code>weather</code>" in shown
    assert "4 degrees" in shown
    assert "It is 4 degrees." in shown
    assert f'src="{address(project, request_id)}images/0"' in shown
    assert 'src="https://elsewhere' not in shown
    assert "https://elsewhere.example/a.png" in shown


def test_request__ids__link_to_what_they_name(project: Project, spool: Path) -> None:
    shown = page(project, stored(spool, project))

    assert f'href="/admin/analytics/sessions/{project.pk}/chat/1?' in shown
    assert f"/admin/analytics/users/{project.pk}/ann-7?" in shown
    assert f"curl {public_url()}/api/gateway/v1/chat/completions" in shown
    assert "x-svc-session-id: chat/1" in shown


def test_request__refused_by_a_guardrail__said_in_the_sentence(api: APIClient, project: Project, spool: Path) -> None:
    verdicts = '[{"guardrail":"pii","stage":"input","action":"blocked","detail":"card"}]'
    request_id = stored(
        spool, project, attempts=(), outcome=Outcome.ERROR, status_code=400, error_code="pii", cost_known=False,
        cost_usd="", prompt_tokens=0, completion_tokens=0, attributes={"guardrails": verdicts},
    )  # fmt: skip

    assert api.get(f"/api/llm/requests/{request_id}").json()["summary"] == (
        "refused by the guardrail pii before any provider was asked; $0."
    )
    assert "Refused by the guardrail pii before any provider was asked; $0." in page(project, request_id)


_ENDS: list[tuple[dict[str, Any], str]] = [
    ({"outcome": Outcome.CANCELLED, "attempts": (), "latency_ms": 900}, "the client disconnected after 900 ms"),
    ({"outcome": Outcome.INTERRUPTED, "attempts": ()}, "the worker stopped 3.6 s after the request arrived"),
    ({"cache_status": "hit", "attempts": (), "latency_ms": 3}, "answered from the cache in 3 ms"),
    ({"attempts": (FAILED,) * 5 + (SERVED,)}, "2 more attempts failed, anthropic answered in 2.4 s"),
    (
        {"outcome": Outcome.ERROR, "status_code": 503, "error_code": "no_provider", "attempts": (FAILED,)},
        "openai answered 503 after 1.2 s, the client got 503 no_provider",
    ),
    (
        {"attempts": (AttemptRecord("groq", "m", 0, "circuit_open"), SERVED)},
        "groq was passed over, its circuit being open, anthropic answered in 2.4 s",
    ),
    ({"is_stream": True, "ttft_ms": 1900}, "anthropic answered in 2.4 s, its first token after 650 ms"),
]


def test_summary__each_way_to_end__in_words(api: APIClient, project: Project, spool: Path) -> None:
    given = [made_entry(project, **values) for values, _ in _ENDS]
    store(spool, *given)

    for made, (_, expected) in zip(given, _ENDS, strict=True):
        assert expected in api.get(f"/api/llm/requests/{made.record.request_id}").json()["summary"]


def test_request__reader_without_content__no_texts(project: Project, spool: Path) -> None:
    shown = page(project, stored(spool, project), Role.READER_WITHOUT_CONTENT)

    assert "4 degrees" not in shown
    assert "does not show what was asked" in shown
    assert "anthropic answered in 2.4 s" in shown
    assert "Open in playground" not in shown


def test_request__bodies_that_are_no_json__shown_escaped(project: Project, spool: Path) -> None:
    made = make_entry(b"<b>no", b"not json <b>", project_id=str(project.pk), session_id="<i>")
    store(spool, made)

    shown = page(project, made.record.request_id)

    assert shown.count("not json &lt;b&gt;") == 2
    assert "<i>" not in shown


def test_request__store_away__frame_and_message(project: Project) -> None:
    with store_away():
        shown = page(project, str(project.pk))

    assert "does not answer" in shown
    assert 'aria-label="Pages"' in shown


def test_request__unknown__404_with_frame_and_message(project: Project) -> None:
    answer = signed_in(project).get(address(project, str(project.pk)))

    assert answer.status_code == 404
    shown = b"".join(answer.streaming_content).decode()  # type: ignore[attr-defined]
    assert "There is no such request in this project." in shown and 'id="navigation"' in shown


def test_request__store_away__200_with_the_panels_message(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*given: Any, **options: Any) -> Any:
        raise AnalyticsUnavailableError("The store is away.")

    monkeypatch.setattr(store_client, "query", away)
    assert "Try again" in page(project, str(project.pk))


def test_request__added_to_a_queue__once_and_behind_the_others(project: Project, spool: Path) -> None:
    request_id = stored(spool, project)
    queue, closed = make_queue(project, items=2), make_queue(project, state="closed")
    editor = signed_in(project, Role.EDITOR)
    shown = text_of(editor.get(address(project, request_id)))
    assert f'<option value="{queue.pk}">{queue.name}</option>' in shown and str(closed.pk) not in shown
    form = {"action": "queue", "queue_id": str(queue.pk)}

    for said in ("is in the review queue now", "was in the review queue already"):
        answer = editor.post(address(project, request_id), form, follow=True)
        assert f"The request {said}: {queue.name}." in text_of(answer)

    assert [str(one) for one in queue.items.values_list("request_id", flat=True)][2:] == [request_id]


def test_request__added_to_no_or_a_closed_queue__says_so(project: Project, spool: Path) -> None:
    request_id, closed = stored(spool, project), make_queue(project, state="closed")
    editor = signed_in(project, Role.EDITOR)
    assert "No review queue is open." in text_of(editor.get(address(project, request_id)))

    for queue_id, said in ((closed.pk, "is closed"), ("x", "There is no such review queue")):
        form = {"action": "queue", "queue_id": str(queue_id)}
        assert said in text_of(editor.post(address(project, request_id), form, follow=True))
    assert closed.items.count() == 3


def test_request__reader__has_no_queues(project: Project, spool: Path) -> None:
    request_id, queue = stored(spool, project), make_queue(project)
    reader = signed_in(project, Role.READER)

    assert "Add to queue" not in text_of(reader.get(address(project, request_id)))
    form = {"action": "queue", "queue_id": str(queue.pk)}
    assert reader.post(address(project, request_id), form).status_code == 403


def test_request__long_texts__cut_with_a_link_to_all_of_them(project: Project, spool: Path) -> None:
    body = json.dumps({"messages": [{"role": "user", "content": "x" * 300_000 + "end"}]}).encode()
    made = make_entry(body, b"", project_id=str(project.pk))
    store(spool, made)

    shown = page(project, made.record.request_id)

    assert len(shown) < 150_000
    assert "Show all 300,003 characters" in shown
    assert "xend" not in shown
    assert "xend" in page(project, made.record.request_id, all="1")


def test_score__thumb__recorded_by_the_person(project: Project, spool: Path) -> None:
    request_id = stored(spool, project)
    client = signed_in(project, Role.EDITOR)

    answer = client.post(address(project, request_id), {"verdict": "down", "score_name": "quality", "reason": "rude"})

    assert answer.status_code == 302
    score = Score.objects.get(request_id=request_id)
    assert (score.score_value, score.score_type, score.reason, score.evaluator_type) == (0, "boolean", "rude", "human")
    assert score.created_by.startswith("user:")


def test_feedback__on_the_request__below_its_scores(project: Project, spool: Path) -> None:
    request_id, other = stored(spool, project), stored(spool, project)
    for text, named in (("marzipan", UUID(request_id)), ("nougat", UUID(other)), ("halva", None)):
        record_feedback(
            project_id=project.pk, session_id="chat/1", score=2, text=text, actor="user:x", request_id=named
        )

    shown = text_of(signed_in(project).get(address(project, request_id)))
    hidden = text_of(signed_in(project, Role.READER_WITHOUT_CONTENT).get(address(project, request_id)))

    assert [word for word in ("marzipan", "nougat", "halva", "2 of 5") if word in shown] == ["marzipan", "2 of 5"]
    assert "marzipan" not in hidden and "2 of 5" in hidden


def test_score__number_out_of_range__form_keeps_what_was_typed(project: Project, spool: Path) -> None:
    request_id = stored(spool, project)
    given = {"verdict": "number", "score_name": "tone", "score_value": "101", "reason": "kept words"}

    shown = text_of(signed_in(project).post(address(project, request_id), given))

    assert "kept words" in shown
    assert 'value="101"' in shown
    assert "less than or equal to 100" in shown
    assert not Score.objects.exists()


@pytest.mark.parametrize(("role", "action"), [(Role.READER, "score"), (Role.EDITOR, "delete")])
def test_request__action_beyond_the_role__403(project: Project, spool: Path, role: Role, action: str) -> None:
    request_id = stored(spool, project)

    assert signed_in(project, role).post(address(project, request_id), {"action": action}).status_code == 403


def test_delete__administrator__request_gone(api: APIClient, project: Project, spool: Path) -> None:
    request_id = stored(spool, project)

    answer = signed_in(project).post(address(project, request_id), {"action": "delete"})

    assert answer.status_code == 302
    assert api.get(f"/api/llm/requests/{request_id}").status_code == 404


def test_image__inline__sniffed_type_and_closed_policy(project: Project, spool: Path) -> None:
    url = address(project, stored(spool, project)) + "images/0"

    answer = signed_in(project).get(url)

    assert answer.content == base64.b64decode(PNG)
    assert answer["Content-Type"] == "image/png"
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Content-Security-Policy"] == "sandbox; default-src 'none'"
    assert signed_in(project).get(url[:-1] + "7").status_code == 404
    assert signed_in(project, Role.READER_WITHOUT_CONTENT).get(url).status_code == 403


def test_conversation__any_protocol__turns_and_parameters(api: APIClient, project: Project, spool: Path) -> None:
    request_id = stored(spool, project)

    found = api.get(f"/api/llm/requests/{request_id}/conversation").json()

    assert [turn["role"] for turn in found["turns"]] == ["user", "assistant", "tool"]
    assert found["answer"][0]["parts"][0]["text"] == "It is 4 degrees."
    assert found["parameters"] == {"model": "m", "temperature": 0.5}
    assert [part["image"] for part in found["turns"][0]["parts"]] == [None, 0, None]
