"""The changes of configuration that are announced to the workers, over the suite's real Redis."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis
from django.conf import settings
from pytest_django import DjangoCaptureOnCommitCallbacks

from gateway.snapshot.announcements import CHANNEL, PRICES
from integrations.models import ModelPrice, ProviderIntegration
from integrations.pricing.services import load_shipped_prices
from tests.factories.core import make_key, make_project
from tests.waiting import TIMEOUT_SECONDS


@pytest.fixture
def channel(stores: None) -> Iterator[redis.client.PubSub]:
    with redis.Redis.from_url(settings.REDIS_URL) as client, client.pubsub(ignore_subscribe_messages=True) as channel:
        channel.subscribe(CHANNEL)
        channel.get_message(timeout=TIMEOUT_SECONDS)
        yield channel


def changes(channel: redis.client.PubSub) -> set[str]:
    """Returns all announcements so far: a change has been published when it returns, so a marker published now comes
    last."""
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        client.publish(CHANNEL, "now")
    found = set()
    while (message := channel.get_message(timeout=TIMEOUT_SECONDS)) is not None and message["data"] != b"now":
        found.add(message["data"].decode())
    assert message is not None
    return found


@pytest.mark.django_db
def test_announcement__bulk_load_of_prices__is_one_of_prices(
    channel: redis.client.PubSub, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        load_shipped_prices()

    assert changes(channel) == {PRICES}


@pytest.mark.django_db
def test_announcement__one_price_saved__is_one_of_prices(
    channel: redis.client.PubSub, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        ModelPrice.objects.create(provider="openai", model="gpt-of-this-test")

    assert changes(channel) == {PRICES}


@pytest.mark.django_db
def test_announcement__price_of_one_project__names_it(
    channel: redis.client.PubSub, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    project = make_project()

    with django_capture_on_commit_callbacks(execute=True):
        price = ModelPrice.objects.create(provider="openai", model="gpt-of-this-test", project=project)
    assert changes(channel) == {str(project.pk)}

    with django_capture_on_commit_callbacks(execute=True):
        price.delete()
    assert changes(channel) == {str(project.pk)}


@pytest.mark.django_db
def test_announcement__key_and_integration__name_their_project(
    channel: redis.client.PubSub, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    project = make_project()

    with django_capture_on_commit_callbacks(execute=True):
        make_key(project)
    assert changes(channel) == {str(project.pk)}

    with django_capture_on_commit_callbacks(execute=True):
        integration = ProviderIntegration.objects.create(project=project, provider="openai")
    assert changes(channel) == {str(project.pk)}

    with django_capture_on_commit_callbacks(execute=True):
        integration.delete()
    assert changes(channel) == {str(project.pk)}
