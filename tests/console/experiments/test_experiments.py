from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from analytics.models import ListPage
from analytics.saved_views import save_view
from core.roles import Role
from core.ui.formats import money
from gateway.models import Experiment, ExperimentItem
from prompts.models import PromptConfig
from tests.console.pages import text_of
from tests.console.prompts.conftest import shown
from tests.factories.core import make_staff
from tests.factories.prompts import make_config, make_version
from tests.gateway.experiments.conftest import Scene, run_all, scene, upstream

__all__ = ["scene", "upstream"]

LIST, NEW = "/admin/experiments/", "/admin/experiments/new/"


@pytest.fixture
def ann(client: Client, scene: Scene) -> Client:
    client.force_login(make_staff(Role.EDITOR, scene.project, name="ann"))
    return client


@pytest.fixture
def prompt(scene: Scene) -> PromptConfig:
    config = make_config(scene.project, "support")
    make_version(config, "Be kind.")
    make_version(config, "Be quick.")
    config.refresh_from_db()
    return config


def send(client: Client, scene: Scene, **fields: Any) -> Any:
    address = f"{NEW}?project={scene.project.pk}&range=custom&start=2020-01-01"
    return client.post(address, {"order": "newest", "item_limit": "20", "action": "start", **fields})


def page(experiment_id: Any) -> str:
    return f"{LIST}{experiment_id}/"


def test_list__none_yet__leads_to_the_first(ann: Client, scene: Scene) -> None:
    text = shown(ann, LIST, scene.project)
    assert "Nothing was tried yet" in text and NEW in text


def test_form__versions_in_the_address__chosen_with_the_estimate_of_the_api(
    ann: Client, scene: Scene, prompt: PromptConfig
) -> None:
    second = prompt.versions.get(number=2)
    served: dict[str, Any] = {"prompt_config_id": str(prompt.pk), "prompt_version": 1}
    for number in range(3):
        scene.past(f"Question {number}", cost_usd="0.0200000000", **served)
    scene.past("of no prompt")

    range_of_all = {"range": "custom", "start": "2020-01-01"}
    text = shown(ann, NEW, scene.project, a=str(prompt.active_version_id), b=str(second.pk), **range_of_all)

    assert f'value="{second.pk}" selected' in text
    body = {
        "candidates": [{"version_id": str(prompt.active_version_id)}, {"version_id": str(second.pk)}],
        "filter": {"prompt_config_id": str(prompt.pk)},
    }
    api = scene.api.post("/api/llm/experiments/estimate", body, format="json").json()
    assert "3 items" in text
    assert (api["item_count"], money(api["total_cost_usd"])) == (3, "$0.12")
    assert "$0.12" in text


def test_form__sent__experiment_of_both_that_runs(ann: Client, scene: Scene, prompt: PromptConfig) -> None:
    scene.past()
    second = prompt.versions.get(number=2)

    answer = send(ann, scene, a=str(prompt.active_version_id), b=str(second.pk), b_model="openai/gpt-4.1")

    experiment = Experiment.objects.get()
    assert answer.headers["Location"].startswith(page(experiment.pk))
    assert [candidate["prompt_version"] for candidate in experiment.candidates] == [1, 2]
    assert experiment.candidates[1]["model"] == "openai/gpt-4.1"
    assert experiment.created_by == "user:ann"


def test_form__filters_of_requests_and_a_saved_view__narrow_the_items(ann: Client, scene: Scene) -> None:
    matching = scene.past("matching", provider="openai", user_id="u-1")
    scene.past("other provider", provider="azure_openai", user_id="u-1")
    scene.past("other user", provider="openai", user_id="u-2")
    view, _ = save_view(
        project_id=scene.project.pk, owner="user:ann", page=ListPage.REQUESTS, name="mine", query="user_id=u-1&range=7d"
    )
    text = shown(ann, NEW, scene.project, provider="openai", view=str(view.pk), b_temperature="1")
    assert "Only those with provider openai." in text and "1 item<" in text

    send(ann, scene, view=str(view.pk), further="provider=openai", b_temperature="1")

    assert [str(row.request_id) for row in ExperimentItem.objects.all()] == [matching]


def test_form__several_values_and_not_of_the_log__kept_and_narrow_the_items(ann: Client, scene: Scene) -> None:
    matching = {scene.past("first", user_id="u-1"), scene.past("second", user_id="u-2")}
    scene.past("left out", user_id="u-2", provider="azure_openai")
    scene.past("other user", user_id="u-3")

    query = {"user_id": ["u-1", "u-2"], "not_provider": "azure_openai"}
    text = shown(ann, NEW, scene.project, **query, b_temperature="1", range="custom", start="2020-01-01")
    assert "user id u-1 or u-2" in text and "2 items<" in text

    send(ann, scene, further="user_id=u-1&user_id=u-2&not_provider=azure_openai", b_temperature="1")

    experiment = Experiment.objects.get()
    assert {str(row.request_id) for row in ExperimentItem.objects.all()} == matching
    assert experiment.filter["user_id"] == ["u-1", "u-2"]
    assert "user_id=u-1&amp;user_id=u-2" in shown(ann, page(experiment.pk), scene.project)


def test_form__no_difference_or_nothing_matches__says_so_and_keeps_what_was_typed(ann: Client, scene: Scene) -> None:
    same = text_of(send(ann, scene, user_id="ann-7"))
    assert "Is the same as an earlier candidate" in same and 'value="ann-7"' in same

    none = text_of(send(ann, scene, b_temperature="0.5", user_id="nobody"))
    assert "No chat completion whose texts are stored matches" in none and 'value="nobody"' in none

    too_many = text_of(send(ann, scene, b_temperature="0.5", item_limit="1001"))
    assert "less than or equal to 1000" in too_many
    assert not Experiment.objects.exists()


def test_experiment__done__answers_and_summary_of_the_api(ann: Client, scene: Scene, prompt: PromptConfig) -> None:
    past = [scene.past(f"Question {number}") for number in range(2)]
    second = prompt.versions.get(number=2)
    made = scene.create({"version_id": str(prompt.active_version_id)}, {"version_id": str(second.pk)})
    run_all()

    text = shown(ann, page(made["id"]), scene.project)

    found = scene.experiment(made["id"])
    assert "4 of 4 answers" in text
    assert text.count("Tomorrow.") == 4
    assert all(f"{money(row['mean_cost_usd'])}</td>" in text for row in found["summary"])
    ids = [answer["request_id"] for entry in scene.items(made["id"]) for answer in entry["answers"]]
    assert all(f'data-id="{request_id}" href="/admin/' in text for request_id in [*past, *ids])
    assert f"/admin/rollouts/new/?project={scene.project.pk}" in text and f"target={second.pk}" in text
    assert f"target={prompt.active_version_id}" not in text


def test_experiment__winner_picked__counts(ann: Client, scene: Scene) -> None:
    for number in range(12):
        scene.past(f"Question {number}")
    made = scene.create()
    run_all()
    for position in range(1, 13):
        ann.post(page(made["id"]), {"action": "pick", "position": str(position), "winner": "B"})

    text = shown(ann, page(made["id"]), scene.project)

    assert set(ExperimentItem.objects.values_list("winner", "winner_by")) == {("B", "user:ann")}
    assert "B is better: 100% (12 of 12 won, 0 tied)" in text
    assert 'aria-pressed="true"' in text
    assert "Question 0" not in text and "Question 0" in shown(ann, page(made["id"]), scene.project, p="2")


def test_experiment__pending__cancelled_and_deleted_from_its_page(ann: Client, scene: Scene) -> None:
    scene.past()
    made = scene.create()
    assert "data-refresh" in shown(ann, page(made["id"]), scene.project)

    ann.post(page(made["id"]), {"action": "cancel"})
    text = shown(ann, page(made["id"]), scene.project)
    assert "cancelled" in text and "data-refresh" not in text

    assert ann.post(page(made["id"]), {"action": "delete"}).status_code == 302
    assert ann.get(page(made["id"])).status_code == 404


def test_experiment__roles__see_what_they_may(client: Client, scene: Scene) -> None:
    scene.past("marzipan")
    made = scene.create()
    run_all()
    client.force_login(make_staff(Role.READER_WITHOUT_CONTENT, scene.project))

    text = shown(client, page(made["id"]), scene.project)

    assert "Tomorrow." not in text and "marzipan" not in text
    assert "is better" not in text and "Delete" not in text
    assert client.post(page(made["id"]), {"action": "cancel"}).status_code == 403
    assert client.get(NEW, {"project": str(scene.project.pk)}).status_code == 403


def test_experiment__markup_in_an_answer__is_shown_as_text(ann: Client, scene: Scene) -> None:
    scene.past("<script>alert(1)</script>")
    made = scene.create()
    run_all()

    assert "<script>alert" not in shown(ann, page(made["id"]), scene.project)
