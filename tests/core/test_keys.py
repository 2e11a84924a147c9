from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from core.errors import ValidationError
from core.keys.services import find_key, hash_key, issue_key, project_exists, project_keys, revoke_key
from core.models import ApiKey
from tests.factories.core import make_key, make_project

pytestmark = pytest.mark.django_db


def test_issue_key__both_scopes__stores_hash_and_prefix_only() -> None:
    row, key = issue_key(make_project(), name="ci", scopes=["manage", "gateway"])

    assert re.fullmatch(r"svc_[A-Za-z0-9_-]{43}", key)
    row.refresh_from_db()
    assert row.key_hash == hash_key(key)
    assert row.prefix == key[:8]
    assert row.scopes == ["gateway", "manage"]
    assert not any(key in str(value) for value in ApiKey.objects.filter(pk=row.pk).values().get().values())


@pytest.mark.parametrize(("scopes", "named"), [([], "At least one"), (["gateway", "root"], "'root'")])
def test_issue_key__bad_scopes__refused_by_name(scopes: list[str], named: str) -> None:
    with pytest.raises(ValidationError, match=named) as caught:
        issue_key(make_project(), name="ci", scopes=scopes)
    assert caught.value.details is not None
    assert list(caught.value.details) == ["scopes"]


def test_issue_key__expiry_in_the_past__refused() -> None:
    with pytest.raises(ValidationError, match="expires_at"):
        issue_key(make_project(), name="ci", scopes=["gateway"], expires_at=timezone.now())


def test_find_key__valid__gives_record() -> None:
    project = make_project()
    row, key = make_key(project, ["gateway"])

    record = find_key(hash_key(key))

    assert record is not None
    assert (record.id, record.project_id, record.scopes) == (row.pk, project.pk, frozenset({"gateway"}))


def test_find_key__unknown_or_revoked__none() -> None:
    row, key = make_key(make_project())
    revoke_key(row)

    assert find_key(hash_key(key)) is None
    assert find_key(hash_key("svc_unknown")) is None


def test_project_keys__revoked_and_foreign__left_out() -> None:
    project = make_project()
    kept, _ = make_key(project)
    revoke_key(make_key(project)[0])
    make_key(make_project())

    assert [record.id for record in project_keys(project.pk)] == [kept.pk]


def test_expired__at_the_instant__true_and_before_false() -> None:
    until = datetime(2030, 1, 1, tzinfo=UTC)
    _, key = make_key(make_project(), expires_at=until)
    record = find_key(hash_key(key))

    assert record is not None
    assert record.expired(until)
    assert not record.expired(until - timedelta(microseconds=1))


def test_revoke_key__twice__keeps_first_time() -> None:
    row, _ = make_key(make_project())
    revoke_key(row)
    first = row.revoked_at
    revoke_key(row)

    row.refresh_from_db()
    assert row.revoked_at == first


def test_hash_key__bytes_text_and_lone_surrogates__same_function() -> None:
    assert hash_key("svc_ü") == hash_key("svc_ü".encode())
    assert len(hash_key("\udcff")) == 64


def test_project_exists__known_and_unknown__true_and_false() -> None:
    project = make_project()
    assert project_exists(project.pk)
    project.delete()
    assert not project_exists(project.pk)
