from __future__ import annotations

import json
import random
import uuid
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from analytics.clickhouse import client
from analytics.errors import AnalyticsQueryError, AnalyticsUnavailableError
from analytics.request_log.columns import INGESTED, Columns
from analytics.shipper import batch_size, columns, loop
from analytics.shipper.loop import Shipper, SpoolLockedError
from analytics.shipper.texts import MAX_CHARACTERS, completion_text, prompt_text
from analytics.spool import names
from analytics.spool.inflight import InflightRequest, InflightTable
from analytics.spool.shipper_state import StateFile
from analytics.spool.writer import SpoolWriter
from tests.factories.analytics import make_entry, make_record, rows_of, store
from tests.tables.cases import tabled

ID, USER = INGESTED.index("request_id"), INGESTED.index("user_id")


class Crash(BaseException):
    """An exception in the place of the death of the process."""


class FakeStore:
    """A store that takes each token once, as ClickHouse does; it refuses rows of one user, and fails or crashes
    on demand."""

    def __init__(self) -> None:
        self.tokens: set[str] = set()
        self.rows: list[Sequence[Any]] = []
        self.batches: list[int] = []
        self.failures = 0
        self.refuses = "poison"

    def insert(self, columns: Columns, token: str) -> None:
        rows = rows_of(columns)
        if self.failures:
            self.failures -= 1
            raise AnalyticsUnavailableError("away")
        if any(row[USER] == self.refuses for row in rows):
            raise AnalyticsQueryError("refused", server_code=53, reason="TYPE_MISMATCH")
        if token not in self.tokens:
            self.tokens.add(token)
            self.rows.extend(rows)
            self.batches.append(len(rows))

    def count(self) -> Counter[str]:
        return Counter(str(row[ID]) for row in self.rows)


@pytest.fixture
def fake() -> FakeStore:
    return FakeStore()


def fill(spool: Path, number: int, **values: Any) -> list[str]:
    writer = SpoolWriter(spool, segment_bytes=values.pop("segment_bytes", 1 << 20))
    entries = [make_entry(b'{"messages": []}', b"{}", **values) for _ in range(number)]
    for entry in entries:
        writer.append(entry)
    writer.close()
    return [entry.record.request_id for entry in entries]


def drain(spool: Path, fake: FakeStore) -> None:
    shipper = Shipper(spool, insert=fake.insert)
    try:
        shipper.drain()
    finally:
        shipper.close()


def left_over(spool: Path) -> list[str]:
    own = (".lock", ".state", ".totals", ".count")
    return sorted(path.name for path in spool.iterdir() if path.suffix not in own)


def test_drain__several_segments__everything_once_and_deleted(spool: Path, fake: FakeStore) -> None:
    expected = fill(spool, 50, segment_bytes=4000) + fill(spool, 20)

    drain(spool, fake)

    assert fake.count() == Counter(expected)
    assert fake.batches == [70]
    assert left_over(spool) == []


def test_drain__more_than_a_batch__limits_hold(spool: Path, fake: FakeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_size, "MAX_ROWS", 30)
    expected = fill(spool, 100, segment_bytes=9000)

    drain(spool, fake)

    assert fake.count() == Counter(expected)
    assert max(fake.batches) == 30
    monkeypatch.setattr(batch_size, "MAX_BYTES", 1)
    drain_again = fill(spool, 3)
    drain(spool, fake)
    assert fake.count() == Counter(expected + drain_again)
    assert fake.batches[-3:] == [1, 1, 1]


def test_drain__fast_store__batches_grow_to_the_limit(
    spool: Path, fake: FakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_size, "MAX_ROWS", 40)
    expected = fill(spool, 130)

    drain(spool, fake)

    assert fake.count() == Counter(expected)
    assert fake.batches == [10, 20, 40, 40, 20]


def test_drain__store_that_takes_too_long__batches_shrink_and_all_is_stored(
    spool: Path, fake: FakeStore, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    settings.CLICKHOUSE_QUERY_SECONDS = 0
    monkeypatch.setattr(batch_size, "MAX_ROWS", 64)
    expected = fill(spool, 40)

    drain(spool, fake)

    assert fake.count() == Counter(expected)
    assert fake.batches[:4] == [16, 8, 4, 2]
    assert set(fake.batches[4:]) == {2}


def test_drain__store_with_little_memory__batches_fit_into_it(spool: Path, fake: FakeStore, settings: Settings) -> None:
    expected = fill(spool, 40)
    size = sum(path.stat().st_size for path in names.list_files(spool, names.SEGMENT))
    settings.CLICKHOUSE_QUERY_BYTES = 16 * size // 4

    drain(spool, fake)

    assert fake.count() == Counter(expected)
    assert max(fake.batches) <= 10


def test_drain__texts_that_repeat_nothing__go_in_small_batches_and_all_are_stored(
    spool: Path, fake: FakeStore, settings: Settings
) -> None:
    settings.CLICKHOUSE_QUERY_BYTES = 100_000_000
    writer = SpoolWriter(spool, segment_bytes=1 << 20)
    entries = [make_entry(json.dumps({"messages": random.randbytes(10_000).hex()}).encode()) for _ in range(200)]
    for entry in entries:
        writer.append(entry)
    writer.close()

    drain(spool, fake)

    assert fake.count() == Counter(entry.record.request_id for entry in entries)
    # A batch has 1.5 MB of such texts, and would have 6 MB of others.
    assert len(fake.batches) >= 3
    assert max(fake.batches) <= 80


def test_ship__living_writer__shipped_at_once_and_segment_kept(spool: Path, fake: FakeStore) -> None:
    writer = SpoolWriter(spool)
    shipper = Shipper(spool, insert=fake.insert)
    for number in range(1, 4):
        writer.append(make_entry())
        assert shipper.ship_batch()
        assert len(fake.rows) == number
        assert not shipper.ship_batch()
    (segment,) = names.list_files(spool, names.SEGMENT)
    writer.close()
    shipper.ship_batch()
    shipper.close()

    assert not segment.exists()


def test_ship__store_away__same_batch_until_it_is_back(
    spool: Path, fake: FakeStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(loop, "_FIRST_RETRY_SECONDS", 0.001)
    monkeypatch.setattr(loop, "_QUICK_RETRY_SECONDS", 0.001)
    expected = fill(spool, 5)
    fake.failures = 8

    drain(spool, fake)

    assert fake.count() == Counter(expected)
    events = [record.getMessage().split()[0] for record in caplog.records]
    assert events == ["store.unavailable", "store.recovered"]


def test_ship__stopped_while_store_is_away__keeps_the_batch(spool: Path, fake: FakeStore) -> None:
    expected = fill(spool, 5)
    fake.failures = 1
    shipper = Shipper(spool, insert=fake.insert)
    shipper.stop.set()
    assert not shipper.ship_batch()
    shipper.close()
    late = fill(spool, 2)

    drain(spool, fake)

    assert fake.count() == Counter(expected + late)
    assert fake.batches == [5, 2]


def test_ship__poison_row__halved_down_to_the_dead_letter(spool: Path, fake: FakeStore) -> None:
    good = fill(spool, 13)
    (bad,) = fill(spool, 1, user_id="poison")
    good += fill(spool, 7)

    drain(spool, fake)

    assert fake.count() == Counter(good)
    letters = sorted((spool / "dead").iterdir())
    assert [path.suffix for path in letters] == [".reason", ".seg"]
    assert "TYPE_MISMATCH" in letters[0].read_text()
    assert bad.encode() in letters[1].read_bytes()


def test_ship__record_that_fits_no_column__dead_letter_and_rest_stored(spool: Path, fake: FakeStore) -> None:
    good = fill(spool, 2)
    fill(spool, 1, project_id="not-a-uuid")
    fill(spool, 1, cost_usd="a lot")
    good += fill(spool, 1, latency_ms=-5, prompt_tokens=2**40, retention_days=10**6)

    drain(spool, fake)

    assert fake.count() == Counter(good)
    assert len(list((spool / "dead").glob("*.seg"))) == 2


def test_ship__texts_cannot_be_made__record_stored_without_them(
    spool: Path, fake: FakeStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(columns, "prompt_text", lambda content: content[10**9])
    expected = fill(spool, 2)

    drain(spool, fake)

    assert fake.count() == Counter(expected)
    assert [row[INGESTED.index("prompt")] for row in fake.rows] == [b"", b""]
    assert {row[INGESTED.index("request")] for row in fake.rows} == {b'{"messages": []}'}
    assert all(record.getMessage().startswith("record.text_failed") for record in caplog.records)


def test_ship__torn_end_and_damaged_middle__reported_and_rest_stored(spool: Path, fake: FakeStore) -> None:
    expected = fill(spool, 9)
    (segment,) = names.list_files(spool, names.SEGMENT)
    content = bytearray(segment.read_bytes())
    length = len(content) // 9
    content[4 * length + 30] ^= 255
    segment.write_bytes(content[:-10])

    drain(spool, fake)

    assert fake.count() == Counter(expected[:4] + expected[5:8])
    assert len(list((spool / "dead").glob("*.bytes"))) == 2
    assert left_over(spool) == ["dead"]


def test_ship__nothing_but_a_torn_end_and_a_record_that_fits_no_column__dead_letters_and_goes_on(
    spool: Path, fake: FakeStore
) -> None:
    fill(spool, 1)
    (segment,) = names.list_files(spool, names.SEGMENT)
    segment.write_bytes(segment.read_bytes()[:-10])
    drain(spool, fake)
    fill(spool, 1, project_id="not-a-uuid")
    drain(spool, fake)
    later = fill(spool, 1)

    drain(spool, fake)

    assert fake.count() == Counter(later)
    assert left_over(spool) == ["dead"]


def test_ship__living_writers_segment_damaged__records_behind_are_shipped_and_damage_is_reported_once(
    spool: Path, fake: FakeStore, caplog: pytest.LogCaptureFixture
) -> None:
    writer = SpoolWriter(spool)
    entries = [make_entry(b"{}", b"{}") for _ in range(12)]
    for entry in entries[:6]:
        writer.append(entry)
    (segment,) = names.list_files(spool, names.SEGMENT)
    length = segment.stat().st_size // 6
    with segment.open("r+b") as file:
        file.seek(3 * length)
        file.write(b"\xff" * (length // 2))
    shipper = Shipper(spool, insert=fake.insert)
    shipper.drain()
    for entry in entries[6:]:
        writer.append(entry)
        shipper.drain()
    shipper.close()

    expected = [entry.record.request_id for entry in entries]
    assert fake.count() == Counter(expected[:3] + expected[4:])
    assert len(list((spool / "dead").glob("*.bytes"))) == 1
    assert [record.getMessage().split()[0] for record in caplog.records] == ["segment.damaged"]
    writer.close()


@pytest.mark.parametrize("seed", range(12))
def test_ship__crash_at_any_step_with_more_arriving__each_request_exactly_once(
    spool: Path, fake: FakeStore, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chance = random.Random(seed)
    monkeypatch.setattr(batch_size, "MAX_ROWS", 7)
    expected: list[str] = []
    save, unlink = StateFile.save, Path.unlink

    def dying(step: Any) -> Any:
        def run(*args: Any, **options: Any) -> Any:
            if chance.random() < 0.15:
                raise Crash
            result = step(*args, **options)
            if chance.random() < 0.15:
                raise Crash
            return result

        return run

    for _ in range(60):
        expected += fill(spool, chance.randrange(5), segment_bytes=2500)
        if chance.random() < 0.3:
            table = InflightTable(spool)
            record = make_record()
            table.begin(InflightRequest(record.request_id, record.project_id, record.ts, 1, "m", False, "s", "u"))
            table.close()
            expected.append(record.request_id)
        shipper = Shipper(spool, insert=dying(fake.insert))
        with monkeypatch.context() as patch:
            patch.setattr(StateFile, "save", dying(save))
            patch.setattr(Path, "unlink", dying(unlink))
            try:
                shipper.ship_batch()
            except Crash:
                pass
            finally:
                shipper.close()
    drain(spool, fake)

    assert fake.count() == Counter(expected)
    assert left_over(spool) == []


def test_shipper__second_one__refused_with_the_first_ones_pid(spool: Path, fake: FakeStore) -> None:
    first = Shipper(spool, insert=fake.insert)

    with pytest.raises(SpoolLockedError, match=r"pid \d+"):
        Shipper(spool, insert=fake.insert)

    first.close()
    Shipper(spool, insert=fake.insert).close()


def test_shipper__damaged_state__refuses_to_guess(spool: Path, fake: FakeStore) -> None:
    (spool / "shipper.state").write_bytes(b"{")

    with pytest.raises(ValueError, match="damaged"):
        Shipper(spool, insert=fake.insert)


@tabled
def test_prompt_text__any_shape__readable_text(request_body: Any, text: str) -> None:
    assert prompt_text(json.dumps(request_body).encode()).decode() == text


def test_texts__odd_bytes__never_fail() -> None:
    for content in (b"", b"{", b"\xff\xfe", b"null", b"[" * 100_000, b'{"messages": NaN}'):
        assert prompt_text(content) == b""
    assert completion_text(b'{"choices": [{"message": {"content": "a\\ud800b"}}, 1, {}]}') == b"a?b"
    long = json.dumps({"messages": [{"role": "user", "content": "ü" * 2_000_000}]}).encode()
    assert len(prompt_text(long).decode()) == MAX_CHARACTERS


@pytest.mark.parametrize(
    ("body", "stored"),
    [
        (b'{"messages": []}', '{"messages": []}'),
        ('{"messages": "Привет, 退款 🙂"}'.encode(), '{"messages": "Привет, 退款 🙂"}'),
        (b'{"messages": "a\xffb"}', '{"messages": "a\ufffdb"}'),
        (b"\xed\xa0\x80", "\ufffd\ufffd\ufffd"),
    ],
)
@pytest.mark.usefixtures("clickhouse")
def test_drain__body_of_any_bytes__is_stored_as_utf8(spool: Path, body: bytes, stored: str) -> None:
    project = str(uuid.uuid4())

    store(spool, make_entry(body, body, project_id=project))

    sql = "SELECT request, response, isValidUTF8(request) FROM payloads WHERE project_id = {project:UUID}"
    assert client.execute(sql, {"project": project}) == [(stored, stored, 1)]
