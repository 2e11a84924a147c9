"""The size of a batch: it grows while there is a backlog, and never beyond the memory of shipper and store."""

from __future__ import annotations

import random
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings

from analytics.clickhouse import client
from analytics.shipper.batch_size import MAX_BYTES, MAX_ROWS, BatchSize
from analytics.shipper.columns import to_columns
from analytics.shipper.index_memory import count_fitting
from analytics.shipper.loop import insert_into_store
from analytics.shipper.texts import MAX_CHARACTERS
from analytics.spool.frames import HEADER, encode_meta
from analytics.spool.reader import Frame
from tests.analytics.requests.entries import chat
from tests.analytics.texts import frames_of, hashes, identifiers, ideographs, letters, prose
from tests.factories.analytics import make_entry, uuid7
from tests.night import cases

_STORED = st.tuples(st.integers(0, MAX_ROWS), st.integers(0, MAX_BYTES), st.floats(0, 60))


@given(batches=st.lists(_STORED, max_size=30))
def test_size__whatever_was_stored__is_within_the_bounds(batches: list[tuple[int, int, float]]) -> None:
    size = BatchSize()

    for rows, stored, seconds in batches:
        size.adapt(rows=rows, size=stored, seconds=seconds)

        assert 1 <= size.max_rows <= MAX_ROWS
        assert 1 <= size.max_bytes <= MAX_BYTES


@pytest.mark.parametrize("is_small", [True, False])
def test_size__of_full_batches_taken_fast__grows_to_the_maximum(settings: Settings, is_small: bool) -> None:
    settings.CLICKHOUSE_QUERY_BYTES = 16 * MAX_BYTES
    size = BatchSize()
    first = size.max_rows, size.max_bytes

    for _ in range(5):
        size.adapt(rows=size.max_rows if is_small else 1, size=1 if is_small else size.max_bytes, seconds=0.01)

    assert first == (MAX_ROWS // 4, MAX_BYTES // 4)
    assert (size.max_rows, size.max_bytes) == (MAX_ROWS, MAX_BYTES)


@pytest.mark.usefixtures("clickhouse")
def test_size__largest_batch_of_small_records__fits_into_the_memory_of_a_query() -> None:
    """Its rows differ as those of many sessions and users do, and it has as many as a batch may have."""
    entries = [make_entry(session_id=f"session {number}", user_id=f"user {number}") for number in range(1000)]
    frames = [Frame(0, 0, encode_meta(entry.record), b"", b"") for entry in entries]
    columns = {name: [*values] * (MAX_ROWS // len(frames)) for name, values in to_columns(frames).items()}
    assert MAX_ROWS * min(HEADER.size + len(frame.meta) for frame in frames) < MAX_BYTES

    client.insert_columns("ingest", columns, token=uuid7(0))

    project = columns["project_id"][0]
    [(stored,)] = client.execute("SELECT count() FROM requests WHERE project_id = {p:UUID}", {"p": project})
    assert stored == MAX_ROWS // len(frames)


@pytest.mark.usefixtures("clickhouse")
# Identifiers are rated as ideographs are, of which each two are a word.
@pytest.mark.parametrize(
    "write",
    cases([hashes, identifiers, ideographs, prose, letters], by_day=[hashes, ideographs, prose, letters]),
)
def test_size__largest_batch_of_texts_of_a_kind__fits_into_the_memory_of_a_query(
    settings: Settings, write: Callable[[random.Random], str]
) -> None:
    project = str(uuid7(0))
    frames = [
        msgspec.structs.replace(frame, meta=encode_meta(make_entry(frame.request, project_id=project).record))
        for frame in frames_of(write, settings.CLICKHOUSE_QUERY_BYTES // 30)
    ]
    columns = to_columns(frames[: count_fitting(frames, settings.CLICKHOUSE_QUERY_BYTES)])

    insert_into_store(columns, str(uuid7(0)))

    [(stored,)] = client.execute("SELECT count() FROM payloads WHERE project_id = {p:UUID}", {"p": project})
    assert stored == len(columns["request_id"]) < len(frames)


@pytest.mark.usefixtures("clickhouse")
@pytest.mark.parametrize("write", cases([identifiers, ideographs, letters], by_day=[ideographs, letters]))
def test_size__one_record_of_the_longest_texts__fits_into_the_memory_of_a_query(
    write: Callable[[random.Random], str],
) -> None:
    """A batch has one record at least, whatever it needs."""
    project, chance = str(uuid7(0)), random.Random(3)
    prompt, completion = ("".join(write(chance) for _ in range(MAX_CHARACTERS // 4_000))[:MAX_CHARACTERS] for _ in "pc")
    entry = make_entry(**chat(prompt, completion), project_id=project)
    frames = [Frame(0, 0, encode_meta(entry.record), entry.request, entry.response)]

    insert_into_store(to_columns(frames), str(uuid7(0)))

    # A message of this length is a text of its own.
    [asked] = client.execute("SELECT lengthUTF8(prompt) FROM shared_texts WHERE project_id = {p:UUID}", {"p": project})
    [answered] = client.execute(
        "SELECT lengthUTF8(completion) FROM payloads WHERE project_id = {p:UUID}", {"p": project}
    )
    assert min(*asked, *answered) >= MAX_CHARACTERS * 0.9
