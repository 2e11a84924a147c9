"""The fixtures of the adapter tests.

Every test of this folder runs for every provider, and for a new one that was added as CONTRIBUTING describes. `tooled`,
`thinking` and the like are the subjects whose dialect has that ability; the others are asserted to refuse the request.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.fakes.dialects.registry import FAKES, distinct_providers
from tests.integrations.adapters.newcomer import FAKE, NEWCOMER, registered
from tests.integrations.adapters.subject import Subject, subject_by_responses, subject_of

BY_RESPONSES = "openai by responses"
EVERY = [*distinct_providers(), NEWCOMER]


def having(ability: str) -> list[str]:
    """Returns the providers whose fake has the ability; a provider without a fake is included and fails."""
    fakes = {**FAKES, NEWCOMER: FAKE}
    return [name for name in EVERY if name not in fakes or getattr(fakes[name].can, ability)]


def ways_having(ability: str) -> list[str]:
    """Returns these providers, and OpenAI by its Responses API, which has every ability."""
    return [*having(ability), BY_RESPONSES]


def subject_under_test(request: pytest.FixtureRequest) -> Iterator[Subject]:
    with ExitStack() as stack:
        if request.param == NEWCOMER:
            stack.enter_context(registered())
        yield subject_by_responses() if request.param == BY_RESPONSES else subject_of(request.param)


@pytest.fixture(params=[*EVERY, BY_RESPONSES])
def subject(request: pytest.FixtureRequest) -> Iterator[Subject]:
    yield from subject_under_test(request)


@pytest.fixture(params=ways_having("tools"))
def tooled(request: pytest.FixtureRequest) -> Iterator[Subject]:
    yield from subject_under_test(request)


@pytest.fixture(params=ways_having("reasoning"))
def thinking(request: pytest.FixtureRequest) -> Iterator[Subject]:
    yield from subject_under_test(request)


@pytest.fixture(params=ways_having("signatures"))
def signing(request: pytest.FixtureRequest) -> Iterator[Subject]:
    yield from subject_under_test(request)


@pytest.fixture(params=ways_having("stream_errors"))
def reporting(request: pytest.FixtureRequest) -> Iterator[Subject]:
    yield from subject_under_test(request)
