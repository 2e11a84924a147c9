from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from analytics.datasets.services import delete_dataset
from core.models import AuditEntry
from core.roles import Role
from rollouts.models import Gate, Rollout, RolloutTransition
from rollouts.services import roll_back_rollout
from tests.console.rollouts.test_rollout import path_of, shown, signed_in, text_of
from tests.console.rollouts.test_rollout import totals as totals
from tests.factories.datasets import make_dataset
from tests.factories.gates import make_verdict
from tests.factories.prompts import make_config
from tests.factories.rollouts import make_rollout

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("totals")]

NEW = "New experiment of both versions"


def gated(**fields: Any) -> Rollout:
    return make_rollout(make_config(versions=2), gate=Gate.EXPERIMENT, **fields)


def moved(client: Client, rollout: Rollout, action: str = "start", **fields: str) -> str:
    return text_of(client.post(path_of(rollout), {"action": action, "reason": "", "stage": "0", **fields}, follow=True))


def test_page__no_gate__no_panel_and_no_override(client: Client) -> None:
    rollout = make_rollout()
    text = shown(signed_in(client, rollout), rollout)
    assert 'id="panel-gate"' not in text
    assert "override_gate" not in text


def test_page__not_passed__why_and_a_new_experiment_filled_in(client: Client) -> None:
    config = make_config(versions=2)
    dataset = make_dataset(config.project, name="<b>set</b>")
    rollout = make_rollout(config, gate=Gate.EXPERIMENT, gate_dataset_id=dataset.pk)
    text = unescape(shown(signed_in(client, rollout), rollout))
    assert text.index('id="panel-gate"') < text.index('id="panel-verdict"')
    assert "<strong>Not passed.</strong> No experiment over a data set compares version 2 with version 1" in text
    versions = f"version={rollout.baseline_version_id}&version={rollout.target_version_id}"
    assert f"dataset={dataset.pk}&{versions}" in text
    assert NEW in text
    assert f"/admin/datasets/{rollout.project_id}/{dataset.pk}/" in text
    assert "&lt;b&gt;set&lt;/b&gt;" in shown(client, rollout)
    assert text.count('name="override_gate"') == 2


def test_page__passed__leads_to_the_experiment_and_starts(client: Client) -> None:
    rollout = gated()
    experiment = make_verdict(make_dataset(rollout.project), rollout.baseline_version, rollout.target_version)
    text = shown(signed_in(client, rollout), rollout)
    assert "<strong>Passed.</strong> Experiment “nightly” passed over version 1" in text
    assert f"/admin/experiments/{experiment.pk}/" in text
    assert "override_gate" not in text
    assert "is now running." in moved(client, rollout)
    text = shown(client, rollout)
    assert "<strong>Passed.</strong>" in text
    assert NEW not in text


def test_start__not_passed__message_says_why(client: Client) -> None:
    rollout = gated()
    signed_in(client, rollout)
    for action in ("start", "complete"):
        assert "The gate is not passed. No experiment over a data set" in moved(client, rollout, action)
    rollout.refresh_from_db()
    assert rollout.status == "pending"


def test_override__without_a_reason__error_at_the_field_and_nothing_lost(client: Client) -> None:
    rollout = gated()
    signed_in(client, rollout)
    for reason in ("", "   "):
        text = moved(client, rollout, override_gate="on", reason=reason)
        assert "Say why the gate is overridden." in text
        assert "checked" in text
    rollout.refresh_from_db()
    assert rollout.status == "pending"


def test_override__with_a_reason__runs_and_everybody_sees_who_and_why(client: Client) -> None:
    rollout = gated()
    make_verdict(make_dataset(rollout.project), rollout.baseline_version, rollout.target_version, "worse")
    signed_in(client, rollout)
    text = moved(client, rollout, override_gate="on", reason="Only the <i>tone</i> differs.")
    assert "is now running." in text
    move = RolloutTransition.objects.latest("id")
    name = move.actor.removeprefix("user:")
    assert f"<strong>Overridden by {name}.</strong> Only the &lt;i&gt;tone&lt;/i&gt; differs." in text
    assert "What was missing: Experiment “nightly” found version 2 worse than version 1." in text
    assert move.figures["gate"]["state"] == "overridden"
    assert "Only the <i>tone</i> differs." in LogEntry.objects.get().change_message
    entry = AuditEntry.objects.get(object_kind="rollout transition")
    assert entry.changes["gate.state"] == [None, "overridden"]


def test_page__data_set_deleted__says_so(client: Client) -> None:
    config = make_config(versions=2)
    dataset = make_dataset(config.project)
    rollout = make_rollout(config, gate=Gate.EXPERIMENT, gate_dataset_id=dataset.pk)
    delete_dataset(project_id=config.project_id, dataset_id=dataset.pk, actor="test")
    assert f"{dataset.pk}, which is deleted" in shown(signed_in(client, rollout), rollout)


def test_page__ended_before__never_opened(client: Client) -> None:
    rollout = gated()
    roll_back_rollout(project_id=rollout.project_id, rollout_id=rollout.pk, actor="test")
    text = shown(signed_in(client, rollout), rollout)
    assert "The rollout ended before its gate was passed." in text
    assert NEW not in text


def test_page__reader__sees_the_state_and_cannot_override(client: Client) -> None:
    rollout = gated()
    signed_in(client, rollout, Role.READER)
    text = shown(client, rollout)
    assert "<strong>Not passed.</strong>" in text
    assert "override_gate" not in text
    assert NEW not in text
    sent = {"action": "start", "override_gate": "on", "reason": "Sure."}
    assert client.post(path_of(rollout), sent).status_code == 403


@pytest.mark.parametrize("is_known", [True, False])
def test_form__address_names_a_gate__has_it_and_no_data_set_that_there_is_not(client: Client, is_known: bool) -> None:
    rollout = gated()
    config = make_config(versions=2, project=rollout.project)
    dataset = make_dataset(rollout.project)
    named = {"project": str(config.project_id), "config": str(config.pk), "gate": "experiment"}

    answer = signed_in(client, rollout).get(
        "/admin/rollouts/new/", {**named, "gate_dataset": str(dataset.pk) if is_known else "x"}
    )

    text = text_of(answer)
    (chosen,) = re.findall(r'<input type="radio" name="gate" value="(\w+)"[^>]* checked', text)
    assert chosen == "experiment"
    assert (f'<option value="{dataset.pk}" selected>' in text) is is_known
