"""The recorded exchanges of all providers of OpenAI's dialect, with plans and without."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
import pytest

from tests.fakes.replay import ReplayServer
from tests.gateway import test_recordings as recordings
from tests.gateway.managed import make_prompt
from tests.gateway.plans.both import PlansService, same, seen_by
from tests.gateway.recorded import Recording
from tests.gateway.test_recordings import is_of_openai, request_body

pytestmark = pytest.mark.recordings

WHOLE, FAILED, STREAMS = (
    [one for one in every if is_of_openai(one)] for every in (recordings.WHOLE, recordings.FAILED, recordings.STREAMS)
)
EXCHANGES = [*WHOLE, *FAILED, *STREAMS[::8]]


@pytest.fixture(scope="module")
def replay() -> Iterator[ReplayServer]:
    with ReplayServer({recording["name"]: recording for recording in EXCHANGES}) as server:
        yield server


def test_recorded_exchanges__with_and_without_plans__are_the_same(plans: PlansService, replay: ReplayServer) -> None:
    planned = 0
    for recording in EXCHANGES:
        planned += is_planned(recording, plans, replay)

    # Most of these are plain requests with answers that conform.
    assert planned > len(WHOLE) / 3


def test_recorded_exchanges__with_a_prompt__are_the_same(plans: PlansService, replay: ReplayServer) -> None:
    some = EXCHANGES[::3]
    planned = [is_planned(recording, plans, replay, headers={"x-svc-prompt-config": "support"}) for recording in some]

    assert sum(planned) > sum(recording in WHOLE for recording in some) / 3


def is_planned(
    recording: Recording, plans: PlansService, replay: ReplayServer, headers: Mapping[str, str] | None = None
) -> bool:
    """Returns whether a plan has answered the recorded request, after a check that it is the same without one. The
    headers may name the prompt `support`."""
    base_urls = {recording["provider"]: replay.base_url(recording["name"])}
    gateway = plans.new_project(base_urls=base_urls, routing={"retry_enabled": False})
    if headers:
        # The workers do not know the project yet, so they read its prompt with it.
        make_prompt(gateway, "Be kind.")
    content = msgspec.json.encode(request_body(recording))
    for port in plans.ports:
        # A plan needs a connection.
        seen_by(gateway, replay, port, content, headers)
    return same(gateway, replay, content, headers=headers)[1]
