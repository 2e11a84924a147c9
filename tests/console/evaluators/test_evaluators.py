from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from analytics.evaluators.definitions import KINDS
from analytics.evaluators.services import NewVersion, add_version
from analytics.models import Evaluator, EvaluatorVersion, Score
from console.evaluators.kinds import KIND_FORMS, KIND_TITLES
from core.models import Project
from core.roles import Role
from tests.console.conftest import shown, text_of
from tests.factories.core import make_project, make_staff
from tests.factories.evaluators import make_evaluator
from tests.fakes.scripted import answer
from tests.gateway.evaluations.conftest import Scene, scene, upstream
from tests.tables.cases import stored, tabled

__all__ = ["scene", "upstream"]

LIST, NEW = "/admin/evaluators/", "/admin/evaluators/new/"
JUDGE = "openai/judge-1"
GROUNDED: dict[str, Any] = {
    "name": "grounded",
    "meaning": "Every claim stands in the <conversation>.",
    "labels": [{"name": "yes", "meaning": "All do.", "score": 1}, {"name": "no", "meaning": "One is not.", "score": 0}],
}
# What a person enters in the form of each kind, and the definition that it makes.
ENTERED: dict[str, tuple[dict[str, str], dict[str, Any]]] = stored(__file__, "ENTERED")


@pytest.fixture
def editor(project: Project, client: Client) -> Client:
    client.force_login(make_staff(Role.EDITOR, project, name="ann"))
    return client


def page(row: Evaluator) -> str:
    return f"{LIST}{row.pk}/"


def fields_of(kind: str) -> dict[str, str]:
    return {
        name if name.startswith("criteria-") else f"definition-{name}": value
        for name, value in {"good_from": "0.5", **ENTERED[kind][0]}.items()
    }


def send(client: Client, project: Project, path: str, action: str, kind: str = "", **values: str) -> Any:
    query = f"project={project.pk}&kind={kind}&range=custom&start=2020-01-01"
    return client.post(f"{path}?{query}", {"action": action, **values})


def test_list__empty__says_the_first_step(editor: Client, project: Project) -> None:
    text = shown(editor, project, LIST)
    assert "No evaluator yet. The first step" in text and NEW in text


def test_list__of_the_project__active_first_without_a_query_each(
    editor: Client, project: Project, django_assert_max_num_queries: Any
) -> None:
    make_evaluator(make_project(), name="not mine")
    old = make_evaluator(project, name="a-old")
    Evaluator.objects.filter(pk=old.pk).update(state="archived")
    for number in range(20):
        make_evaluator(project, name=f"rule-{number}")
    judge = make_evaluator(project, "judge", name="with-a-judge", criteria=[GROUNDED])

    with django_assert_max_num_queries(14):
        text = shown(editor, project, LIST, request_id="some-request")

    assert "not mine" not in text
    assert text.index("rule-0") < text.index("with-a-judge") < text.index("a-old")
    assert page(judge) in text and "request_id=some-request" in text


def test_kinds__each__have_a_form_and_a_link_to_it(editor: Client, project: Project) -> None:
    assert KIND_FORMS.keys() == KIND_TITLES.keys() == KINDS.keys() == ENTERED.keys()
    text = shown(editor, project, NEW)
    assert all(f"kind={kind}" in text for kind in KINDS)


@pytest.mark.parametrize("kind", ENTERED)
def test_new__each_kind__is_made_shown_and_saved_again_as_it_is(editor: Client, project: Project, kind: str) -> None:
    assert "Make the evaluator" in shown(editor, project, NEW, kind=kind)

    answered = send(editor, project, NEW, "save", kind, name="mine", **fields_of(kind))

    row = Evaluator.objects.get(name="mine")
    assert answered.status_code == 302 and answered.headers["location"].startswith(page(row))
    assert (row.kind, row.created_by) == (kind, "user:ann")
    assert row.versions.get().definition == ENTERED[kind][1]
    assert "What it does" in shown(editor, project, page(row))
    assert send(editor, project, page(row), "save", **fields_of(kind)).status_code == 302
    assert row.versions.count() == 1


@tabled
def test_new__wrong_field__is_named_and_what_was_typed_stays(
    editor: Client, project: Project, kind: str, changes: dict[str, str], problem: str
) -> None:
    make_evaluator(project, name="known")

    text = text_of(send(editor, project, NEW, "save", kind, **{"name": "mine", **fields_of(kind), **changes}))

    assert problem in text
    assert not Evaluator.objects.filter(name="mine").exists()


def test_rubric__more_rows__keep_what_was_typed_up_to_the_most(editor: Client, project: Project) -> None:
    sent = {"name": "mine", **fields_of("judge")}
    text = text_of(send(editor, project, NEW, "more", "judge", **sent))

    assert 'name="criteria-1-name"' in text and 'name="criteria-0-labels-2-score"' in text
    assert 'value="grounded"' in text and "Every claim stands" in text
    full = {f"criteria-{place}-name": "" for place in range(5)}
    labels = {f"criteria-0-labels-{place}-name": "" for place in range(9)}
    text = text_of(send(editor, project, NEW, "more", "judge", **{**full, **labels, **sent}))
    assert 'name="criteria-5-name"' not in text and 'name="criteria-0-labels-9-name"' not in text


def test_edit__makes_the_next_version_and_an_earlier_one_comes_back(editor: Client, project: Project) -> None:
    row = make_evaluator(project)
    send(editor, project, page(row), "save", **{**fields_of("contains"), "definition-value": "eight"})
    assert [version.definition["value"] for version in row.versions.all()] == ["eight", "seven"]

    text = shown(editor, project, page(row), version=1)
    assert "Version 1 of 2" in text and 'value="seven"' in text and "Save as version 3" in text
    assert editor.get(page(row), {"version": "9"}).status_code == 404


def test_versions__many__are_in_pages(editor: Client, project: Project) -> None:
    row = make_evaluator(project)
    versions = (EvaluatorVersion(evaluator=row, number=2 + n, definition={"value": f"v{n}"}) for n in range(30))
    EvaluatorVersion.objects.bulk_create(versions)

    assert "“v29”" in (first := shown(editor, project, page(row))) and "“v5”" not in first
    assert "“v5”" in shown(editor, project, page(row), p=2)


def test_archived__and_restored_and_renamed(editor: Client, project: Project) -> None:
    row = make_evaluator(project)
    make_evaluator(project, name="known")

    send(editor, project, page(row), "archive")
    row.refresh_from_db()
    assert row.state == "archived"
    send(editor, project, page(row), "restore")
    refused = text_of(send(editor, project, page(row), "rename", name="known"))
    assert "There is an evaluator of this name" in refused
    assert send(editor, project, page(row), "rename", name="new", description="Of trains").status_code == 302
    row.refresh_from_db()
    assert (row.name, row.description, row.state) == ("new", "Of trains", "active")


def test_reader__sees_the_definition_and_changes_nothing(project: Project, client: Client) -> None:
    row = make_evaluator(project, "judge", criteria=[GROUNDED])
    client.force_login(make_staff(Role.READER, project))

    text = shown(client, project, page(row))

    assert "grounded" in text and "<conversation>" in text
    assert "Try it" not in text and "Archive" not in text
    assert send(client, project, page(row), "archive").status_code == 403
    assert client.get(NEW, {"project": str(project.pk), "kind": "judge"}).status_code in (403, 404)


@pytest.fixture
def ann(scene: Scene, client: Client) -> Client:
    client.force_login(make_staff(Role.EDITOR, scene.project, name="ann"))
    return client


@pytest.mark.django_db(transaction=True)
class TestDryRun:
    def test_newest_of_a_filter__are_scored_by_the_form_and_nothing_is_kept(self, ann: Client, scene: Scene) -> None:
        for text in ("At seven.", "At eight.", "I do not know."):
            scene.answered(text)
        row = make_evaluator(scene.project)
        fields = {**fields_of("contains"), "definition-value": "eight", "definition-negated": ""}

        text = text_of(send(ann, scene.project, page(row), "try", **fields, newest="20"))
        none = text_of(send(ann, scene.project, page(row), "try", **fields, filter="user_id=nobody"))

        assert "1 good of 3 scored. Cost: $0." in text
        assert "No chat completion of the range" in none
        assert row.versions.get().definition["value"] == "seven"
        assert not Score.objects.exists()

    def test_named_requests__each_have_a_score_or_a_reason(self, ann: Client, scene: Scene) -> None:
        request_id, other = scene.answered("At eight."), make_evaluator(make_project()).pk
        sent = {"request_ids": f"{request_id}\n{other}", "expected": "eight"}

        text = text_of(send(ann, scene.project, NEW, "try", "contains", **sent, **{"definition-good_from": "0.5"}))

        assert "1 good of 1 scored, 1 without a score" in text and "request not found" in text
        assert f"/{request_id}/" in text
        assert not Evaluator.objects.filter(project=scene.project).exists()

    @pytest.mark.parametrize(
        "scene",
        [[answer(json.dumps({"grounded": {"reason": "<b>Seven</b> is nowhere.", "label": "no"}}))]],
        indirect=True,
    )
    def test_judge__says_why_and_what_it_cost(self, ann: Client, scene: Scene) -> None:
        row = make_evaluator(scene.project, "judge", criteria=[GROUNDED], model=JUDGE)
        sent = {**fields_of("judge"), "request_ids": scene.answered()}

        answered = send(ann, scene.project, page(row), "try", **sent)

        raw = answered.content.decode() if not answered.streaming else b"".join(answered.streaming_content).decode()
        assert "grounded: &lt;b&gt;Seven&lt;/b&gt; is nowhere." in raw
        assert "0 good of 1 scored" in raw

    @pytest.mark.parametrize(
        ("values", "problem"),
        [
            ({"request_ids": "nonsense"}, "Ids of requests are expected"),
            ({"request_ids": " ".join(f"{n:032x}" for n in range(21))}, "At most 20 requests"),
            ({"newest": "21"}, "less than or equal to 20"),
            ({"filter": "user=ann"}, "The request log has no parameter user"),
            ({"filter": "min_latency_ms=slow"}, "min_latency_ms"),
            ({"definition-good_from": ""}, "This field is required"),
        ],
    )
    def test_wrong_field__is_named(self, ann: Client, scene: Scene, values: dict[str, str], problem: str) -> None:
        row = make_evaluator(scene.project)
        text = text_of(send(ann, scene.project, page(row), "try", **{**fields_of("contains"), **values}))
        assert problem in text and "scored." not in text

    def test_request__its_page__leads_editors_to_the_list(self, ann: Client, scene: Scene) -> None:
        request_id = scene.answered()
        path = f"/admin/analytics/requests/{scene.project.pk}/{request_id}/"
        reader = Client()
        reader.force_login(make_staff(Role.READER, scene.project))

        assert f"{LIST}?project={scene.project.pk}" in (text := shown(ann, scene.project, path))
        assert "Try an evaluator" in text and f"request_id={request_id}" in text
        assert "Try an evaluator" not in shown(reader, scene.project, path)

    def test_request__in_the_address__fills_in_the_form(self, ann: Client, scene: Scene) -> None:
        row, request_id = make_evaluator(scene.project), scene.answered()
        assert request_id in shown(ann, scene.project, page(row), request_id=request_id)
        assert f"request_id={request_id}" in shown(ann, scene.project, NEW, request_id=request_id)

    def test_pairwise__cannot_be_tried(self, ann: Client, scene: Scene) -> None:
        row = make_evaluator(scene.project, "pairwise", question="Which?")
        text = shown(ann, scene.project, page(row))
        assert "which only experiments have" in text and 'name="newest"' not in text


def test_versions__added_by_others__are_the_next(editor: Client, project: Project) -> None:
    row = make_evaluator(project)
    add_version(project_id=project.pk, evaluator_id=row.pk, new=NewVersion({"value": "x"}), actor="api_key:1")
    assert "Save as version 3" in shown(editor, project, page(row))


def test_calibration__without_labels__leads_to_a_queue_of_the_evaluator(editor: Client, project: Project) -> None:
    judge = make_evaluator(project, name="polite")

    text = shown(editor, project, f"{LIST}{judge.pk}/")
    assert "Nobody has labelled answers" in text and f"evaluator_id={judge.pk}" in text

    form = shown(editor, project, "/admin/reviews/", evaluator_id=str(judge.pk))
    assert 'value="polite"' in form and f'<option value="{judge.pk}" selected>polite</option>' in form
