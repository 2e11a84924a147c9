from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.test import Client

from analytics.errors import AnalyticsUnavailableError
from analytics.models import Feedback
from analytics.scores.services import record_feedback
from analytics.scores.sync.run import copy_due
from console.prompts import figures as prompt_figures
from core.models import Project
from core.roles import Role
from core.ui.formats import money
from prompts.labels import set_label
from prompts.models import PromptActivation, PromptConfig, PromptLabel, PromptLabelMove
from rollouts.services import roll_back_rollout
from tests.console.pages import text_of
from tests.console.prompts.conftest import shown
from tests.factories.analytics import make_entry, store
from tests.factories.core import client_of, make_staff
from tests.factories.prompts import make_config
from tests.factories.rollouts import make_rollout

LIST = "/admin/prompts/"
HOUR_US = 3_600_000_000


def page_of(config: PromptConfig) -> str:
    return f"{LIST}{config.pk}/"


@pytest.fixture
def served(clickhouse: None, config: PromptConfig, tmp_path: Path) -> None:
    # The range of a page ends at the last whole second.
    minute_ago = (time.time_ns() // 1000) - 60_000_000
    own: dict[str, Any] = {"project_id": str(config.project_id), "prompt_config_id": str(config.pk), "ts": minute_ago}
    failed: dict[str, Any] = {"outcome": "error", "error_type": "api_error", "status_code": 500}
    store(
        tmp_path,
        make_entry(**own, prompt_version=1, cost_usd="0.1000000000"),
        make_entry(**own, prompt_version=1, cost_usd="0.3000000000"),
        make_entry(**own, prompt_version=1, cost_usd="0.0000000000", **failed),
        make_entry(**own, prompt_version=2, cost_usd="0.5000000000"),
    )


@pytest.fixture
def no_store(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: Any, **__: Any) -> Any:
        raise AnalyticsUnavailableError("The analytics store does not answer.")

    monkeypatch.setattr(prompt_figures, "prompts", away)


def test_list__prompts__with_active_version_rollout_and_the_figures_of_the_api(
    editor: Client, config: PromptConfig, served: None
) -> None:
    rollout = make_rollout(config)

    text = shown(editor, LIST, config.project)

    api = client_of(config.project).get("/api/llm/metrics/prompts", {"group_by": "config"}).json()["results"]
    assert [row["request_count"] for row in api] == [4]
    assert ">4</a>" in text and money(api[0]["total_cost_usd"]) in text and "25 %" in text
    assert f"/admin/prompts/{config.pk}/" in text
    assert rollout.name in text


@pytest.mark.usefixtures("clickhouse")
def test_list__no_prompt__leads_to_the_first(editor: Client, project: Project) -> None:
    text = shown(editor, LIST, project)

    assert "Write the first prompt" in text
    assert "/admin/prompts/new/" in text


@pytest.mark.usefixtures("no_store")
def test_pages__store_away__prompts_are_there_with_a_message(editor: Client, config: PromptConfig) -> None:
    for path in (LIST, page_of(config)):
        text = shown(editor, path, config.project)
        assert "support" in text
        assert "does not answer" in text


def test_prompt__versions__text_figures_and_links_of_each(editor: Client, config: PromptConfig, served: None) -> None:
    text = shown(editor, page_of(config), config.project)

    assert "Help {{ user }} kindly." in text
    assert "Be quick" in text
    api = client_of(config.project).get("/api/llm/metrics/prompts", {"prompt_config_id": str(config.pk)}).json()
    for row in api["results"]:
        assert f"prompt_version={row['prompt_version']}" in text
        assert money(row["total_cost_usd"]) in text
    assert "33.3 %" in text


@pytest.mark.usefixtures("no_store")
def test_prompt__other_version__compared_within_lines_and_offered_to_try_and_roll_out(
    editor: Client, config: PromptConfig
) -> None:
    target = config.versions.get(number=2)

    text = shown(editor, page_of(config), config.project, version="2", against="1")

    assert "<del>kindly</del>" in text and "<ins>quickly</ins>" in text
    assert f"b={target.pk}" in text and f"target={target.pk}" in text


@pytest.mark.usefixtures("no_store")
def test_prompt__activate_and_undo__kept_with_actor_and_reason(editor: Client, config: PromptConfig) -> None:
    answer = editor.post(page_of(config), {"action": "activate", "version": "2", "reason": "quicker"})
    assert answer.status_code == 302
    config.refresh_from_db()
    assert config.active_version == config.versions.get(number=2)

    editor.post(page_of(config), {"action": "undo", "reason": "too quick"})

    config.refresh_from_db()
    assert config.active_version == config.versions.get(number=1)
    kept = list(PromptActivation.objects.order_by("id").values_list("kind", "actor", "reason"))
    assert kept[1:] == [("activated", "user:ann", "quicker"), ("undone", "user:ann", "too quick")]
    assert "too quick" in shown(editor, page_of(config), config.project)


@pytest.mark.usefixtures("no_store")
def test_prompt__rollout_runs__activation_is_refused_with_a_message(editor: Client, config: PromptConfig) -> None:
    make_rollout(config)

    answer = editor.post(page_of(config), {"action": "activate", "version": "2"}, follow=True)

    assert "while a rollout of the prompt config is active" in text_of(answer)


@pytest.mark.usefixtures("no_store")
def test_prompt__version_rolled_back__says_when_and_why_and_leads_to_the_rollout(
    editor: Client, config: PromptConfig
) -> None:
    rollout = make_rollout(config, started=True)
    reason = "Errors: 9 % against 1 %. Mend it."
    roll_back_rollout(project_id=config.project_id, rollout_id=rollout.pk, actor="auto", reason=reason)

    text = shown(editor, page_of(config), config.project)

    [state] = re.findall('<td data-label="State">(<span class="badge bad">.*?)</td>', text)
    assert "rolled back" in state
    assert f"/admin/rollouts/rollout/{rollout.pk}/change/" in state
    assert state.endswith("Errors: 9 % against 1 %.")


@pytest.mark.usefixtures("no_store")
def test_prompt__version_rolled_out__says_how_far_and_leads_to_the_rollout(
    editor: Client, config: PromptConfig
) -> None:
    rollout = make_rollout(config, started=True)

    text = shown(editor, page_of(config), config.project)

    states = re.findall('<td data-label="State">(.*?)</td>', text)
    [state] = [one for one in states if "running" in one]
    assert f"/admin/rollouts/rollout/{rollout.pk}/change/" in state
    assert re.search(r"\d{4} at \d+ %</a>$", state)


@pytest.mark.usefixtures("no_store")
def test_prompt__reader__sees_it_without_verbs_and_changes_nothing(client: Client, config: PromptConfig) -> None:
    client.force_login(make_staff(Role.READER_WITHOUT_CONTENT, config.project))

    text = shown(client, page_of(config), config.project, version="2")

    assert "Help {{ user }} quickly." in text
    assert "Edit as a new version" not in text and "Activate version" not in text
    assert client.post(page_of(config), {"action": "activate", "version": "2"}).status_code == 403


def test_prompt__answers_rated_bad__share_by_version(
    editor: Client, config: PromptConfig, clickhouse: None, tmp_path: Path
) -> None:
    day_ago = int((datetime.now(UTC) - timedelta(hours=30)).timestamp() * 1e6)
    of_version: dict[str, Any] = {"prompt_config_id": str(config.pk), "session_id": "s", "ts": day_ago}
    entries = [
        make_entry(project_id=str(config.project_id), prompt_version=number, **of_version) for number in (1, 2, 2, 2, 2)
    ]
    store(tmp_path, *entries)
    rated = record_feedback(
        project_id=config.project_id,
        session_id="s",
        score=1,
        text="",
        actor="",
        request_id=UUID(entries[-1].record.request_id),
    )
    Feedback.objects.filter(pk=rated.pk).update(created_at=datetime.now(UTC) - timedelta(hours=29))
    copy_due()

    page = shown(editor, f"/admin/prompts/{config.pk}/", config.project, range="7d")
    store(
        tmp_path,
        make_entry(project_id=str(config.project_id), prompt_version=1, **{**of_version, "ts": day_ago + 25 * HOUR_US}),
    )
    today = shown(editor, f"/admin/prompts/{config.pk}/", config.project)

    assert "25.0% (1 of 4)" in page and "0.0% (0 of 1)" in page
    assert "0 of 1 so far" in today


def test_prompt__label_made_moved_and_removed__with_reason_and_actor(editor: Client, config: PromptConfig) -> None:
    address = f"/admin/prompts/{config.pk}/"
    editor.post(address, {"action": "label", "label": "production", "version": "1", "reason": "first"})
    editor.post(address, {"action": "label", "label": "production", "version": "2", "reason": "better"})

    page = shown(editor, address, config.project)
    [label] = PromptLabel.objects.all()
    assert (label.name, label.version.number, label.is_protected) == ("production", 2, False)
    assert "better" in page and "1 → 2" in page
    assert [move.actor for move in PromptLabelMove.objects.all()] == ["user:ann", "user:ann"]

    editor.post(address, {"action": "remove_label", "label": "production", "reason": "unused"})
    assert not PromptLabel.objects.exists()


def test_prompt__protected_label__editor_gets_a_message(editor: Client, config: PromptConfig) -> None:
    given: dict[str, Any] = {"project_id": config.project_id, "config_id": config.pk, "name": "production"}
    set_label(**given, number=1, actor="a", is_administrator=True, is_protected=True)

    answer = editor.post(
        f"/admin/prompts/{config.pk}/", {"action": "label", "label": "production", "version": "2"}, follow=True
    )

    assert "protected" in text_of(answer)
    assert PromptLabel.objects.get().version.number == 1


def test_delete__editor__gone_unless_it_is_rolled_out(editor: Client, config: PromptConfig, no_store: None) -> None:
    rollout = make_rollout(make_config(config.project, "busy", versions=2))
    refused = editor.post(page_of(rollout.config), {"action": "delete"}, follow=True)
    assert "cannot be deleted" in text_of(refused)
    assert "Delete this prompt" in shown(editor, page_of(config), config.project)

    done = editor.post(page_of(config), {"action": "delete"})

    assert (done.status_code, done["Location"].partition("?")[0]) == (302, LIST)
    assert list(PromptConfig.objects.values_list("name", flat=True)) == ["busy"]
