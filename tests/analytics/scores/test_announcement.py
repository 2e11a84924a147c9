"""The worker is notified of new scores, and scores are stored without a broker as well."""

from __future__ import annotations

import pytest

from analytics.scores.sync.announcement import announce
from tests.factories.core import make_project
from tests.factories.scores import make_score

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]


def test_announce__broker_away__only_logged(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    from celery import current_app

    with current_app.connection_for_write("redis://127.0.0.1:1/0") as nobody:
        send = current_app.send_task
        monkeypatch.setattr(
            "analytics.scores.sync.announcement.current_app.send_task",
            lambda name, **options: send(name, connection=nobody, **options),
        )
        announce()

    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        "copy.postponed error=OperationalError"
    ]


@pytest.mark.django_db(transaction=True)
def test_score__committed__worker_is_notified(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks: list[str] = []
    monkeypatch.setattr(
        "analytics.scores.sync.announcement.current_app.send_task", lambda name, **options: tasks.append(name)
    )

    make_score(make_project())

    assert tasks == ["analytics.copy_scores"]
