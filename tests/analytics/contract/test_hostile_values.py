"""Any value of a parameter or id gets an answer or an error that names it, at every endpoint, and never a 500."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from rest_framework.test import APIClient

from core.models import Project
from tests.analytics.contract.endpoints import ENDPOINTS, REQUEST, SESSION, Endpoint, content_of, served
from tests.factories.analytics import make_entry, store
from tests.factories.core import make_project
from tests.kept import Keep
from tests.night import cases, examples

pytestmark = pytest.mark.django_db

_VALUES = (
    "", " ", "%", "_", "\\", "\\\\", "%\\", "a\\b", "\\%", "'", '"', "`", "' OR 1=1 --", "'); DROP TABLE requests; --",
    "{project:UUID}", "\x00", "a\x00b", "\t", "a\nb", "\r\n", "\\N", "NULL", "null", "ü😀", "e\u0301", "\u202e",
    "x" * 1025, "x" * 5000, "0", "-0", "-1", "+1", "1.5", "1e3", "1E+7", "1e400", "1_000", "٣", "NaN", "Infinity",
    "-Infinity", "99999999.9999999999", "99999999999", "0.00000000001", "-0.0", str(2**31), str(2**32), str(2**62),
    str(2**62 + 1), str(2**63), str(2**64), "9" * 40, "true", "false", "2026-11-20", "2026-02-30", "0001-01-01",
    "1969-12-31", "1970-01-01", "2199-12-31", "2200-01-01", "9999-12-31", "10000-01-01", "2026-11-20T00:00:00+14:00",
    "2026-11-20T24:00:00", "1970-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2026-11-20T12:00:00 02:00",
    "2026-11-20T12:00:00.1234567Z", "2026-W47-5", "2026-11-20T12:00:60Z", "today", "1763683200", "{a}", "[]", "{}",
    "group_by", "day", "model", "error",
    "00000000-0000-0000-0000-000000000000", "urn:uuid:00000000-0000-0000-0000-000000000000",
    "../../etc/passwd", "%2e%2e", "a/b", "a//b", "/", "..",
)  # fmt: skip
_WORST = ("\x00", "' OR 1=1 --", "%\\", str(2**63), "-1", "9999-12-31", "")
_OF_ALL = ("project_id", "unknown")
_ODD_JSON: tuple[Any, ...] = (None, True, -1, 2**63, 2**64, 1.5, -0.0, [], {}, [[]], [{}], {"a": 1})
_NO_JSON = (
    b"", b"{", b"nul", b'{"project_id"', b"\x00", b"[" * 100_000, b'{"query": "\\ud800"}', b'{"\\ud800": 1}',
    b'{"query": NaN}',    b"\xff\xfe", b'{"query": "\xff"}', '{"query": "a"}'.encode("utf-16"), b"\xef\xbb\xbf{}",
)  # fmt: skip
_TYPES = (
    "text/plain", "application/json; charset=latin-1", "application/json; charset=nonsense", "", "x/y;;=",
    "application/x-www-form-urlencoded", "multipart/form-data", "multipart/form-data; boundary=x",
)  # fmt: skip


@pytest.fixture(scope="module")
def kept_project(keep: Keep) -> Project:
    """A project with a stored request with the ids that the endpoints are called with."""

    def make(spool: Path) -> Project:
        project = make_project()
        ids: dict[str, Any] = {"request_id": REQUEST, "session_id": SESSION, "user_id": "u", "prompt_version": 1}
        store(spool, make_entry(b"{}", project_id=str(project.pk), **ids))
        return project

    return keep(make)


@pytest.fixture
def project(kept_project: Project, db: None) -> Project:
    return kept_project


def some(count: int) -> Iterator[str]:
    """Yields values, other ones in each run; the message of the assertion names the one that failed."""
    yield from _WORST
    yield from random.sample(_VALUES, count)


def ends_well(answer: Any) -> bool:
    if answer.status_code < 400:
        return b'{"error"' not in content_of(answer)
    error: dict[str, Any] = answer.json()["error"]
    return bool(answer.status_code < 500 and {"message", "type", "code"} <= error.keys())


def named(endpoint: Endpoint) -> str:
    return f"{endpoint.method} {endpoint.path}"


def test_endpoints__of_this_list__are_all_there_are() -> None:
    assert {(endpoint.method, endpoint.path) for endpoint in ENDPOINTS} == set(served())


@pytest.mark.parametrize("endpoint", [e for e in ENDPOINTS if e.query], ids=named)
def test_parameter__any_value__answered_or_refused(api: APIClient, project: Project, endpoint: Endpoint) -> None:
    for name in (*endpoint.query, *_OF_ALL):
        # One place reads the names of all endpoints, so that the night tries all values of them.
        for value in cases([*some(examples(1, 4))], by_day=_WORST[:2]) if name in _OF_ALL else some(examples(1, 4)):
            answer = endpoint.call(api, project, {name: value})

            assert ends_well(answer), (name, value, answer.status_code)
            if answer.status_code == 400:
                assert name in answer.json()["error"]["message"], (name, value)


@pytest.mark.parametrize("endpoint", [e for e in ENDPOINTS if "{" in e.path], ids=named)
def test_id_in_a_path__any_text__answered_or_refused(api: APIClient, project: Project, endpoint: Endpoint) -> None:
    raw = ["%FF", "%ED%A0%80", "%C0%AF", "%00", "a%0Ab", "%F5%80%80%80"]
    raw += [quote(value, safe=safe) for safe in ("", "/") for value in some(examples(3, 10))]
    for written in raw:
        answer = endpoint.call(api, project, session=written, request=written)

        assert ends_well(answer), (written, answer.status_code)


@pytest.mark.parametrize("endpoint", [e for e in ENDPOINTS if e.has_body], ids=named)
def test_body__anything__answered_or_refused(api: APIClient, project: Project, endpoint: Endpoint) -> None:
    good = {"project_id": str(project.pk), **endpoint.body}
    odd = [{**good, name: value} for name in good for value in (*_ODD_JSON, *some(examples(2, 8)))]
    open_end = json.dumps(good)[:-1].encode()
    bodies = [json.dumps(body).encode() for body in (*odd, *_ODD_JSON, *some(examples(2, 8)))]
    bodies += [
        open_end + end
        for end in (b', "limit": 1e999}', b', "limit": ' + b"9" * 5000 + b"}", b"}trailing", b',"score":-0.0}')
    ]
    for body in (*bodies, *_NO_JSON):
        answer = endpoint.send(api)(endpoint.url(project), body, content_type="application/json")

        assert ends_well(answer), (body[:200], answer.status_code)
    for content_type in _TYPES:
        answer = endpoint.send(api)(endpoint.url(project), json.dumps(good), content_type=content_type)

        assert ends_well(answer), (content_type, answer.status_code)
