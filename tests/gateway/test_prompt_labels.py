"""Labels and numbers in place of the active version: of requests to models, and of applications that fetch."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes import scripted as play
from tests.fakes.scripted import Script, ScriptedServer
from tests.gateway.managed import Prompt, last_sent, make_prompt
from tests.gateway.service import Gateway, GatewayService
from tests.gateway.test_prompt_fetch import fetch, refused
from tests.gateway.wire import assert_error, body
from tests.tables.cases import tabled


@pytest.fixture
def labelled(service: GatewayService, upstream: ScriptedServer) -> tuple[Gateway, Script, Prompt]:
    """A project with the config `support` of three versions: 1 is active, 2 has the label `production`."""
    script = upstream.play("labels", play.answer())
    project = service.new_project(base_urls={"openai": upstream.base_url("labels")})
    project.upstream = upstream
    prompt = make_prompt(project, "One.", "Two.", "Three.")
    prompt.label("production", 2)
    return project, script, prompt


def sent_text(script: Script) -> Any:
    return last_sent(script)["messages"][0]["content"]


@pytest.mark.parametrize(
    ("name", "text"),
    [("support", "One."), ("support@production", "Two."), ("support@3", "Three."), ("support@latest", "Three.")],
)
@pytest.mark.parametrize("place", ["body", "header"])
def test_request__that_names_a_version__gets_it(
    labelled: tuple[Gateway, Script, Prompt], name: str, text: str, place: str
) -> None:
    project, script, prompt = labelled

    if place == "body":
        response = project.post(body(prompt_config=name))
    else:
        response = project.post(body(), headers={"x-svc-prompt-config": name})

    assert response.status_code == 200, response.text
    assert sent_text(script) == text
    record = project.record(response)
    assert (record.prompt_config_id, record.prompt_name) == (prompt.config_id, "support")
    assert response.headers["x-svc-prompt-version"] == str(record.prompt_version)


@tabled
def test_request__that_names_an_unknown_version__is_404(
    labelled: tuple[Gateway, Script, Prompt], name: str, code: str
) -> None:
    assert_error(labelled[0].post(body(prompt_config=name)), 404, code)


def test_request__that_names_a_version__takes_no_part_in_the_rollout(
    labelled: tuple[Gateway, Script, Prompt],
) -> None:
    project, script, prompt = labelled
    rollout = prompt.roll_out(prompt.version_ids[2], 100)
    project.service.until(lambda: fetch(project).json()["rollout"], bool)

    pinned = project.post(body(prompt_config="support@production"))
    rollout.move("pause")
    project.service.until(lambda: fetch(project).json()["rollout"], lambda found: found is None)
    while_paused = project.post(body(prompt_config="support@1"))

    assert "x-svc-variant" not in pinned.headers
    assert project.record(pinned).rollout_id == ""
    assert while_paused.headers["x-svc-prompt-version"] == "1"
    assert sent_text(script) == "One."


def test_fetch__by_label__is_its_version_with_the_label(labelled: tuple[Gateway, Script, Prompt]) -> None:
    project, _, _ = labelled

    fetched = fetch(project, label="production").json()

    assert (fetched["version_number"], fetched["label"], fetched["rollout"]) == (2, "production", None)
    assert fetched["attributes"]["prompt_gateway.prompt.label"] == "production"
    assert fetch(project, label="latest").json()["version_number"] == 3
    refused(fetch(project, label="staging"), 404, "prompt_label_not_found")


def test_label__moved__is_seen_by_every_worker(labelled: tuple[Gateway, Script, Prompt]) -> None:
    project, _, prompt = labelled
    service = project.service

    def seen() -> set[int]:
        answers = [
            service.client.get(
                f"{service.base_url(port)}/api/llm/prompts/support?label=production", headers=project.headers
            )
            for port in service.ports
        ]
        return {answer.json()["version_number"] for answer in answers}

    assert seen() == {2}
    prompt.label("production", 3)

    # The workers of this service read nothing by themselves: what they see was announced.
    assert service.until(seen, lambda numbers: numbers == {3}) == {3}


def test_config__whose_own_name_has_an_at__is_found_first(service: GatewayService, upstream: ScriptedServer) -> None:
    import sqlite3
    from contextlib import closing

    script = upstream.play("at", play.answer())
    project = service.new_project(base_urls={"openai": upstream.base_url("at")})
    project.upstream = upstream
    make_prompt(project, "Plain.", "Second.", name="mail")
    odd = make_prompt(project, "Odd.", name="mail-2")
    with closing(sqlite3.connect(service.database)) as database:
        database.execute(
            "UPDATE prompts_promptconfig SET name = 'mail@2' WHERE id = ?", (odd.config_id.replace("-", ""),)
        )
        database.commit()
    odd.add("Odder.")

    service.until(lambda: fetch(project, "mail@2").status_code, lambda status: status == 200)
    assert project.post(body(prompt_config="mail@2")).status_code == 200
    assert sent_text(script) == "Odd."
