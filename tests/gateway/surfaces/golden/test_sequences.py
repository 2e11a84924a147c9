"""The events of each surface for each provider dialect, in kind and order (`sequences/<surface>/<dialect>.txt`)."""

from __future__ import annotations

import json
import random
from importlib import import_module
from pathlib import Path
from unittest.mock import patch

import pytest

import gateway.surfaces
import integrations.providers
from tests.fakes.dialects.story import Story
from tests.gateway.native import canonical
from tests.gateway.surfaces.golden.answers import STREAMED, Answer
from tests.gateway.surfaces.golden.order import CHECKS
from tests.gateway.surfaces.golden.outline import outline
from tests.gateway.surfaces.golden.streams import (
    DIALECTS,
    SEQUENCES,
    SURFACES,
    WAYS,
    encoded,
    stories_of,
    streams_of,
    subject_at,
    translator_of,
    upstream,
)
from tests.integrations.adapters.subject import pieces

CELLS = [pytest.param(surface, dialect, id=f"{surface}-{dialect}") for surface in SURFACES for dialect in WAYS]
_SPLITS = 12


def folders_of(package: str, module: str) -> set[str]:
    return {file.parent.name for file in Path(package).glob(f"*/{module}.py")}


def is_made_of_chat(surface: str) -> bool:
    """Returns False for a surface whose answers come from providers that have its operation, and from no other."""
    module = import_module(f"gateway.surfaces.{surface}.surface")
    return any(getattr(value, "native_only", None) is False for value in vars(module).values())


def sequence_of(surface: str, dialect: str) -> str:
    streams = streams_of(surface, dialect)
    return "\n".join(f"# {name}\n{outline(surface, frames)}" for name, frames in streams.items())


def test_every_surface_and_dialect__has_its_sequences() -> None:
    """A new surface or a new dialect is a row or a column of this matrix."""
    surfaces = set(filter(is_made_of_chat, folders_of(gateway.surfaces.__path__[0], "surface")))
    dialects = folders_of(integrations.providers.__path__[0], "adapter") - {"common"}
    assert surfaces == set(SURFACES)
    assert dialects == set(DIALECTS)
    files = {(file.parent.name, file.stem) for file in SEQUENCES.glob("*/*.txt")}
    assert files == {(surface, way) for surface in surfaces for way in WAYS}


@pytest.mark.parametrize(("surface", "dialect"), CELLS)
def test_stream__each_story__has_the_written_events_in_order(surface: str, dialect: str) -> None:
    written = (SEQUENCES / surface / f"{dialect}.txt").read_text(encoding="utf-8")
    assert sequence_of(surface, dialect) == written


@pytest.mark.parametrize(("surface", "dialect"), CELLS)
def test_stream__each_story__keeps_the_vendors_order_and_types(surface: str, dialect: str) -> None:
    for name, frames in streams_of(surface, dialect).items():
        if name != "broken off":
            CHECKS[surface](frames)


@pytest.mark.parametrize(("surface", "dialect"), CELLS)
def test_stream__each_story__is_the_answer_that_the_sdk_puts_together(surface: str, dialect: str) -> None:
    stories = stories_of(surface, subject_at(dialect).fake)
    for name, frames in streams_of(surface, dialect).items():
        if name != "broken off":
            assert STREAMED[surface](frames) == answer_of(surface, stories[name])


@pytest.mark.parametrize(("surface", "dialect"), CELLS)
def test_stream__cut_anywhere__the_same_bytes(surface: str, dialect: str) -> None:
    subject, chance = subject_at(dialect), random.Random(f"{surface} {dialect}")
    for name, story in stories_of(surface, subject.fake).items():
        data = b"".join(upstream(subject, name, story).events)
        with patch("time.time", return_value=1_800_000_000.0):
            whole = encoded(surface, translator_of(subject), [data])
            for _ in range(_SPLITS):
                cuts = [chance.randrange(len(data)) for _ in range(chance.randint(1, 40))]
                assert encoded(surface, translator_of(subject), pieces(data, cuts)) == whole


def answer_of(surface: str, story: Story) -> Answer:
    usage = (story.usage.prompt_tokens, story.usage.cache_read_tokens, story.usage.completion_tokens)
    calls = tuple((call.name, canonical(json.dumps(dict(call.arguments)))) for call in story.calls)
    # A completion of a text has no place for reasoning.
    reasoning = "" if surface == "completions" else story.reasoning
    return Answer(story.text, reasoning, "", calls, story.finish, usage)
