"""Requests whose messages are stored once for all of them are read, found, exported and erased as all others."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analytics.clickhouse import client
from analytics.queries.bodies import bounded_bodies, get_bodies
from analytics.queries.export import export_chunks
from analytics.queries.request_cursor import RequestCursor
from analytics.queries.request_filters import RequestFilter
from analytics.queries.requests import get_payload, list_requests
from analytics.queries.search import SearchFilter, search
from analytics.request_log.columns import Columns
from analytics.request_log.record import SpoolEntry
from analytics.shipper.loop import Shipper
from analytics.shipper.texts import completion_text, prompt_text
from analytics.spool.writer import SpoolWriter
from tests.factories.analytics import make_entry, store
from tests.night import examples

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]

_WORDS = st.sampled_from(
    ["granite", "zirkonium", "Straße", "用户请求", "été", "a", "İstanbul", "QmFzZTY0" * 9, "\n", " "]
)
_MESSAGE = st.builds(
    lambda role, words, times: {"role": role, "content": " ".join(words) * times},
    st.sampled_from(["system", "user", "assistant", "tool"]),
    st.lists(_WORDS, min_size=1, max_size=6),
    st.sampled_from([1, 1, 40, 400]),
)


def _entry(
    project: uuid.UUID, messages: list[Any], answer: str = "fine", session: str = "s", **body: Any
) -> SpoolEntry:
    request = json.dumps({**body, "messages": messages, "temperature": 0.2}, ensure_ascii=False).encode()
    response = json.dumps({"choices": [{"message": {"role": "assistant", "content": answer}}]}).encode()
    return make_entry(request, response, project_id=str(project), session_id=session, retention_days=30)


def _bodies(project: uuid.UUID) -> dict[str, tuple[str, str]]:
    exported = {
        str(row.request_id): (payload.request, payload.response)
        for chunk in export_chunks(project, RequestFilter(), content=True)
        for row, payload in chunk
        if payload is not None
    }
    _, rows = list_requests(project, RequestFilter(), limit=1_000, offset=0)
    keys = [RequestCursor(row.ts, row.request_id) for row in rows]
    bodies = {str(one): (row.request, row.response) for one, row in get_bodies(project, keys).items()}
    bounded = {
        str(one.request_id): (one.request, one.response) for one in bounded_bodies(project, keys, max_bytes=1 << 20)
    }
    details = {str(row.request_id): get_payload(project, row) for row in rows}
    assert exported == bodies == bounded
    assert exported == {one: (body.request, body.response) for one, body in details.items() if body is not None}
    return exported


def _sent(*entries: SpoolEntry) -> dict[str, tuple[str, str]]:
    return {one.record.request_id: (one.request.decode(), one.response.decode()) for one in entries}


def _shared(project: uuid.UUID) -> int:
    [(count,)] = client.execute(
        "SELECT uniqExact(text_id) FROM shared_texts WHERE project_id = {p:UUID}", {"p": project}
    )
    return int(count)


def _plain(text: str) -> str:
    return text.lower().replace("i\u0307", "i").replace("\u0131", "i")


@settings(max_examples=examples(12, 60), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_requests__any_shared_beginnings__come_back_equal_and_are_found(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    project = uuid.uuid4()
    histories: list[list[Any]] = [[]]
    entries = []
    for _ in range(data.draw(st.integers(1, 6))):
        history = [*data.draw(st.sampled_from(histories)), *data.draw(st.lists(_MESSAGE, min_size=1, max_size=4))]
        histories.append(history)
        more: dict[str, Any] = data.draw(st.sampled_from([{}, {"model": "é"}, {"tools": history[:1]}]))
        entries.append(_entry(project, history, " ".join(data.draw(st.lists(_WORDS, max_size=3))), **more))
        if data.draw(st.booleans()):
            store(tmp_path_factory.mktemp("spool"), *entries[-1:])
            continue
        store(tmp_path_factory.mktemp("spool"), *entries[-1:], _entry(uuid.uuid4(), history))

    assert _bodies(project) == _sent(*entries)
    previews = {
        str(row.request_id): row.prompt_preview for row in list_requests(project, RequestFilter(), limit=9, offset=0)[1]
    }
    assert previews == {one.record.request_id: prompt_text(one.request).decode()[:200] for one in entries}
    for terms in data.draw(
        st.lists(st.lists(_WORDS.filter(str.strip), min_size=1, max_size=3), min_size=3, max_size=6)
    ):
        expected = [
            one.record.request_id
            for one in reversed(entries)
            if all(
                any(
                    _plain(term) in _plain(side(body).decode())
                    for side, body in ((prompt_text, one.request), (completion_text, one.response))
                )
                for term in terms
            )
        ]
        found = search(project, SearchFilter(terms), limit=100)
        assert [str(hit.request.request_id) for hit in found.hits] == expected, terms


def _conversation(project: uuid.UUID, turns: int) -> list[SpoolEntry]:
    history, entries = [{"role": "system", "content": "Be brief."}], []
    for turn in range(turns):
        history.append({"role": "user", "content": f"question{turn} zirkonium " * 120})
        entries.append(_entry(project, history, f"answer{turn}"))
        history.append({"role": "assistant", "content": f"answer{turn}"})
    return entries


def _ship(spool: Path, entry: SpoolEntry, shipper: Shipper) -> None:
    writer = SpoolWriter(spool)
    writer.append(entry)
    writer.close()
    shipper.drain()


@pytest.mark.parametrize("is_restarted", [False, True])
def test_conversation__turn_by_turn__stores_each_message_once(
    spool: Path, monkeypatch: pytest.MonkeyPatch, is_restarted: bool
) -> None:
    """A shipper that has started stores once more what it does not remember."""
    project, sent = uuid.uuid4(), list[int]()
    insert = client.insert_columns

    def counted(table: str, columns: Columns, *, token: str) -> None:
        if table == "shared_texts":
            sent.append(len(columns["text_id"]))
        insert(table, columns, token=token)

    monkeypatch.setattr(client, "insert_columns", counted)
    entries, shipper = _conversation(project, 4), Shipper(spool)
    for entry in entries:
        _ship(spool, entry, shipper)
        if is_restarted:
            shipper.close()
            shipper = Shipper(spool)
    shipper.close()

    assert sent == ([2, 3, 4] if is_restarted else [2, 1, 1])
    assert _shared(project) == 4
    assert _bodies(project) == _sent(*entries)
    assert [len(search(project, SearchFilter([term]), limit=9).hits) for term in ("question0", "stion3", "zirk")] == [
        4,
        1,
        4,
    ]


def test_batch__whose_process_ends_between_texts_and_requests__is_stored_whole_and_once(
    spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = uuid.uuid4()
    _, one, other = _conversation(project, 3)
    shipper = Shipper(spool)
    _ship(spool, one, shipper)
    insert = client.insert_columns

    def killed(table: str, columns: Columns, *, token: str) -> None:
        if table == "ingest":
            raise KeyboardInterrupt
        insert(table, columns, token=token)

    with monkeypatch.context() as patched:
        patched.setattr(client, "insert_columns", killed)
        with pytest.raises(KeyboardInterrupt):
            _ship(spool, other, shipper)
    shipper.close()
    shipper = Shipper(spool)
    shipper.drain()
    shipper.close()

    assert _bodies(project) == _sent(one, other)
    assert len(search(project, SearchFilter(["question0"]), limit=9).hits) == 2


def test_phrase__that_reaches_over_two_messages__is_found(spool: Path) -> None:
    project = uuid.uuid4()
    first, second = "alpha " * 500 + "omega", "delta " + "beta " * 500
    messages = [{"role": "user", "content": first}, {"role": "tool", "content": second}]
    store(spool, _entry(project, messages), _entry(project, messages[::-1]))

    def count(*terms: str) -> int:
        return len(search(project, SearchFilter(terms), limit=9).hits)

    assert count("omega\ntool: delta") == 1
    assert count("omega\ntool: beta") == 0
    assert count("pha omega", "delta bet") == 2


def test_filters__of_a_search__hold_for_shared_texts(spool: Path) -> None:
    project = uuid.uuid4()
    messages = [{"role": "user", "content": "zirkonium " * 600}]
    one, other = (_entry(project, messages, session=session) for session in ("one", "two"))
    store(spool, one, other)

    for filters in (
        SearchFilter(["irko"], session_id="one"),
        SearchFilter(["irko"], session_id="one", model="gpt-4o-mini"),
    ):
        [hit] = search(project, filters, limit=9).hits
        assert str(hit.request.request_id) == one.record.request_id
        assert hit.prompt.text.startswith("user: zirkonium")
        assert hit.prompt.more
    assert not search(project, SearchFilter(["irko"], model="another"), limit=9).hits
    assert len(search(project, SearchFilter(["irko"]), limit=1).hits) == 1
