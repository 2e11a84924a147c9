"""`/api/llm/end-user-limits` over HTTP."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from core.models import AuditEntry, Project
from gateway.selectors import end_user_limits

pytestmark = pytest.mark.django_db
PATH = "/api/llm/end-user-limits"
LIMITS: dict[str, Any] = {
    "monthly_budget_usd": 2.5,
    "rate_limit_rpm": 10,
    "rate_limit_tpm": 20_000,
    "max_concurrent_requests": 3,
}


def test_post__then_get_patch_delete(api: APIClient, project: Project) -> None:
    made = api.post(PATH, {"user_id": "ann/1 ü", **LIMITS})
    assert made.status_code == 201, made.content
    body = made.json()
    one = f"{PATH}/{body['id']}"
    assert {name: body[name] for name in LIMITS} == LIMITS
    assert api.get(one).json() == body
    assert api.get(PATH, {"user_id": "ann/1 ü"}).json()["results"] == [body]
    assert api.get(PATH, {"user_id": "ann"}).json()["count"] == 0

    changed = api.patch(one, {"rate_limit_rpm": None})

    assert changed.json()["rate_limit_rpm"] is None
    assert changed.json()["rate_limit_tpm"] == 20_000
    assert api.patch(one, changed.json()).status_code == 200
    limits = end_user_limits(project.pk)["ann/1 ü"]
    assert limits is not None
    assert (limits.requests_per_minute, limits.concurrent_requests) == (None, 3)
    assert api.delete(one).status_code == 204
    assert end_user_limits(project.pk) == {}
    entries = AuditEntry.objects.for_project(project.pk)
    assert [entry.operation for entry in entries.order_by("pk")][:2] == ["createEndUserLimit", "changeEndUserLimit"]
    # The name of an end user may be a person's.
    assert not any("ann" in f"{entry.object_label} {entry.summary} {entry.changes}" for entry in entries)
