"""The totals of the shipper count each record once and have a bounded number of series."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from analytics.request_log.columns import INGESTED
from analytics.request_log.record import AttemptRecord, Outcome
from analytics.spool.shipper_state import State, StateFile
from analytics.spool.writer import SpoolWriter
from analytics.totals import file, labels
from analytics.totals.figures import Totals
from analytics.totals.file import TotalsFile, read_totals
from tests.analytics.test_shipper import Crash, FakeStore, drain, fill
from tests.factories.analytics import make_entry

ROW = {name: INGESTED.index(name) for name in INGESTED}


@pytest.fixture
def fake() -> FakeStore:
    return FakeStore()


def totals_of(spool: Path) -> Totals:
    found = read_totals(spool)
    assert found is not None
    return found


def assert_equal_to(fake: FakeStore, totals: Totals) -> None:
    """Returns the requests by all labels, and tokens and cost as the rows of the store have them."""
    requests: Counter[tuple[str, ...]] = Counter()
    tokens, cost = 0, Decimal(0)
    for row in fake.rows:
        requests[tuple(str(row[ROW[name]]) for name in ("project_id", "provider", "model", "outcome"))] += 1
        tokens += row[ROW["prompt_tokens"]] + row[ROW["completion_tokens"]]
        cost += Decimal(row[ROW["cost_usd"]])
    counted = Counter(
        {
            (one.project, one.provider, one.model, outcome): count
            for one in totals.usage
            for outcome, count in one.outcomes.items()
        }
    )
    assert counted == requests
    assert sum(one.prompt_tokens + one.completion_tokens for one in totals.usage) == tokens
    assert Decimal(sum(one.cost_units for one in totals.usage)).scaleb(-10) == cost
    assert totals.records == len(fake.rows)
    by_key = Counter((str(row[ROW["project_id"]]), str(row[ROW["api_key_id"]])) for row in fake.rows)
    assert {(one.project, one.api_key): one.requests for one in totals.keys} == by_key
    assert Decimal(sum(one.cost_units for one in totals.keys)).scaleb(-10) == cost


def test_totals__shipped_batch__equal_the_rows(spool: Path, fake: FakeStore) -> None:
    fill(spool, 7, cost_usd="0.0000000123", prompt_tokens=11, completion_tokens=5, cost_known=True)
    fill(spool, 2, outcome=Outcome.ERROR, status_code=429, error_code="requests_per_minute", provider="")

    drain(spool, fake)

    assert_equal_to(fake, totals_of(spool))
    assert totals_of(spool).errors == {"": {"requests_per_minute": 2}}


@pytest.mark.parametrize("step", range(4))
def test_totals__shipper_dies_at_any_write__counted_once(
    spool: Path, fake: FakeStore, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """The process dies before and after the totals are written, and before and after the state that follows them."""
    fill(spool, 20)
    original_save, original_write = StateFile.save, TotalsFile._save
    at = step

    def die_at(number: int) -> None:
        nonlocal at
        if at == number:
            at = -1
            raise Crash

    def write(self: TotalsFile, content: bytes) -> None:
        die_at(0)
        original_write(self, content)
        die_at(1)

    def save(self: StateFile, state: State) -> None:
        is_commit = not state.plans
        if is_commit:
            die_at(2)
        original_save(self, state)
        if is_commit:
            die_at(3)

    monkeypatch.setattr(TotalsFile, "_save", write)
    monkeypatch.setattr(StateFile, "save", save)

    with pytest.raises(Crash):
        drain(spool, fake)
    fill(spool, 5)
    drain(spool, fake)

    assert len(fake.rows) == 25
    assert_equal_to(fake, totals_of(spool))


def test_totals__refused_record_among_good_ones__only_stored_ones_count(spool: Path, fake: FakeStore) -> None:
    fill(spool, 5)
    fill(spool, 1, user_id="poison")
    fill(spool, 5)

    drain(spool, fake)

    assert len(fake.rows) == 10
    assert_equal_to(fake, totals_of(spool))


def test_totals__unreadable_file__begun_anew_and_records_shipped(spool: Path, fake: FakeStore) -> None:
    fill(spool, 3)
    drain(spool, fake)
    (spool / file.NAME).write_bytes(b"\x00garbage")

    fill(spool, 4)
    drain(spool, fake)

    assert len(fake.rows) == 7
    assert totals_of(spool).records == 4


def test_totals__two_thousand_models__few_have_figures_of_their_own_and_nothing_is_lost(
    spool: Path, fake: FakeStore
) -> None:
    write_models(spool, 2000, project_id=str(uuid4()))

    drain(spool, fake)

    totals = totals_of(spool)
    assert len(totals.usage) == labels.MAX_OF_PROJECT + 1
    assert sum(sum(one.outcomes.values()) for one in totals.usage) == 2000
    (rest,) = [one for one in totals.usage if one.model == labels.OTHER]
    assert rest.outcomes == {"success": 2000 - labels.MAX_OF_PROJECT}


def test_totals__many_projects_with_many_models__bounded_too(spool: Path, fake: FakeStore) -> None:
    for _ in range(labels.MAX_SETS // 2):
        write_models(spool, 10, project_id=str(uuid4()))

    drain(spool, fake)

    totals = totals_of(spool)
    assert len(totals.usage) <= labels.MAX_SETS + labels.MAX_REMAINDERS + 1
    assert sum(sum(one.outcomes.values()) for one in totals.usage) == labels.MAX_SETS * 5


def test_totals__place_idle_for_a_day__goes_to_a_newcomer(
    spool: Path, fake: FakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = str(uuid4())
    write_models(spool, labels.MAX_OF_PROJECT, project_id=project)
    drain(spool, fake)
    monkeypatch.setattr(labels, "IDLE_SECONDS", -1)

    write_models(spool, 1, project_id=project, name="newcomer")
    drain(spool, fake)

    models = {one.model for one in totals_of(spool).usage}
    assert "newcomer-0" in models
    assert len(models) == labels.MAX_OF_PROJECT


def test_totals__place_given_up_within_a_batch__figures_begin_anew(
    spool: Path, fake: FakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(labels, "IDLE_SECONDS", -1)
    monkeypatch.setattr(labels, "MAX_SETS", 1)
    # Requests of one kind are counted together, so that the first model comes again with another kind.
    for name, cache in (("first", "skip"), ("second", "skip"), ("first", "hit")):
        write_models(spool, 1, project_id=str(UUID(int=1)), name=name, cache_status=cache)

    drain(spool, fake)

    assert fake.batches == [3]
    assert [(one.model, sum(one.outcomes.values())) for one in totals_of(spool).usage] == [("first-0", 1)]


def test_totals__attempts__counted_by_result_and_taken_off_the_overhead(spool: Path, fake: FakeStore) -> None:
    calls = (AttemptRecord("openai", "gpt-x", 503, "server_error", 40), AttemptRecord("groq", "llama", 200, "", 50))
    fill(spool, 1, attempts=calls, latency_ms=94, provider="groq", model="llama")

    drain(spool, fake)

    totals = totals_of(spool)
    assert totals.attempts == {"openai": {"server_error": 1}, "groq": {"success": 1}}
    assert totals.overhead.sum_ms == 4


def write_models(spool: Path, count: int, *, name: str = "model", **values: Any) -> None:
    writer = SpoolWriter(spool)
    for number in range(count):
        writer.append(make_entry(model=f"{name}-{number}", **values))
    writer.close()
