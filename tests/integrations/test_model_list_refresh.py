"""The task that reads providers' lists of models: which ones are due, and that a run reads each once."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
import time_machine
from django.utils import timezone
from pytest_django import Settings

from core.models import Project
from integrations.model_lists.selectors import listed_models
from integrations.services import IntegrationChange, update_integration
from integrations.tasks import refresh_model_lists
from tests.factories.core import make_project
from tests.fakes.cheap_calls import cheap_call
from tests.fakes.dialects.registry import FAKES
from tests.fakes.dialects.server import DialectServer
from tests.fakes.scripted import Script
from tests.integrations.saved import save_integration

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def upstream() -> Iterator[DialectServer]:
    with DialectServer() as running:
        yield running


@pytest.fixture
def script(upstream: DialectServer, settings: Settings) -> Script:
    settings.ALLOW_PRIVATE_UPSTREAMS = True
    return upstream.play("openai", cheap_call("openai"))


@pytest.fixture
def project(upstream: DialectServer, script: Script) -> Project:
    created = make_project()
    fake = FAKES["openai"].credentials(upstream.base_url("openai"))
    change = IntegrationChange(secret=fake.secret, base_url=fake.base_url)
    save_integration(project_id=created.pk, provider="openai", change=change, trusted=True)
    return created


def names(project: Project) -> list[str]:
    return [model.id for model in listed_models(project.pk).get("openai", ())]


def test_list__of_a_new_integration__is_read_once(project: Project, script: Script) -> None:
    assert names(project) == []

    for _ in range(3):
        refresh_model_lists()

    assert names(project) == ["fake-1"]
    assert len(script.received) == 1


def test_list__of_a_changed_integration__is_read_again(project: Project, script: Script) -> None:
    refresh_model_lists()

    update_integration(project_id=project.pk, name="openai", change=IntegrationChange(enabled=True), trusted=True)
    refresh_model_lists()

    assert len(script.received) == 2


def test_list__after_an_hour__is_read_again(project: Project, script: Script) -> None:
    refresh_model_lists()

    with time_machine.travel(timezone.now() + timedelta(minutes=59)):
        refresh_model_lists()
    assert len(script.received) == 1

    with time_machine.travel(timezone.now() + timedelta(minutes=61)):
        refresh_model_lists()
    assert len(script.received) == 2


def test_list__of_an_integration_that_is_off__is_not_read(project: Project, script: Script) -> None:
    update_integration(project_id=project.pk, name="openai", change=IntegrationChange(enabled=False), trusted=True)

    refresh_model_lists()

    assert not script.received
