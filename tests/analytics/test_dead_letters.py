"""`manage.py dead_letters`, on what a store refused that takes it later."""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from analytics.shipper.spool_status import read_status
from analytics.spool import names
from tests.analytics.test_shipper import USER, FakeStore, drain, fill

POISON = "poison"


def dead_letters(spool: Path, *arguments: str, **options: Any) -> list[str]:
    out = io.StringIO()
    call_command("dead_letters", *arguments, spool=spool, stdout=out, stderr=out, **options)
    return out.getvalue().splitlines()


@pytest.fixture
def letters(spool: Path) -> list[str]:
    """The names of two refused records and of damaged bytes between good ones."""
    fill(spool, 2)
    fill(spool, 2, user_id=POISON)
    (damaged,) = fill(spool, 1)
    segment = names.list_files(spool, names.SEGMENT)[2]
    content = bytearray(segment.read_bytes())
    content[content.index(damaged.encode())] ^= 255
    segment.write_bytes(content)
    drain(spool, FakeStore())
    return [line.split()[0] for line in dead_letters(spool, "list")[:-1]]


def test_list_and_show__say_what_was_refused_and_why_and_texts_only_if_asked(spool: Path, letters: list[str]) -> None:
    *lines, last = dead_letters(spool, "list")

    assert last == f"3 dead letters in {spool}"
    assert ["TYPE_MISMATCH" in line for line in lines] == [True, True, False]
    assert "damaged bytes: No good frame in bytes 0 to" in lines[2]
    shown = "\n".join(dead_letters(spool, "show", letters[0]))
    assert f'"user_id": "{POISON}"' in shown
    assert "request: 16 bytes, see --content" in shown
    assert 'request: {"messages": []}' in dead_letters(spool, "show", letters[0], content=True)


def test_retry__store_takes_the_records_now__each_once_and_damage_stays(spool: Path, letters: list[str]) -> None:
    refusing, taking = FakeStore(), FakeStore()
    said = dead_letters(spool, "retry", all=True)
    drain(spool, refusing)
    # Refused again, they are dead letters again, under other names.
    again = [line.split()[0] for line in dead_letters(spool, "list")[:2]]
    dead_letters(spool, "retry", *again)
    taking.refuses = ""
    drain(spool, taking)

    assert [line.partition(": ")[2][:4] for line in said] == ["back", "back", "stay"]
    assert refusing.count() == Counter()
    assert [row[USER] for row in taking.rows] == [POISON] * 2
    assert set(again).isdisjoint(letters)
    assert read_status(spool).dead_letters == 1


def test_drop__named_ones_go__and_what_is_not_named_is_refused(spool: Path, letters: list[str]) -> None:
    with pytest.raises(CommandError, match="--all"):
        dead_letters(spool, "drop")
    with pytest.raises(CommandError, match="There is no dead letter other: "):
        dead_letters(spool, "drop", letters[0], "other")

    dead_letters(spool, "drop", letters[0], letters[2])

    assert [line.split()[0] for line in dead_letters(spool, "list")[:-1]] == [letters[1]]
