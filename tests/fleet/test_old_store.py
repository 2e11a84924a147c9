from __future__ import annotations

import re
import subprocess
import sys
import tarfile
from io import BytesIO
from pathlib import Path

import pytest

from tests.fleet.test_upgrade import _git
from tests.live.service import ROOT, LiveService, minimal_environment
from tests.live.sql_dump import sql_dump
from tests.services import START_SECONDS
from tests.waiting import wait_until

# The analytics store of this revision is at migration 45.
_OLD = "1a7ed308"
_REQUESTS = 5

pytestmark = pytest.mark.timeout(1200)


def tree_of(revision: str, folder: Path) -> Path:
    tree = folder / f"tree-{revision}"
    with tarfile.open(fileobj=BytesIO(_git("archive", revision))) as archive:
        archive.extractall(tree, filter="data")
    return tree


def service_of(tree: Path, var_dir: Path, monkeypatch: pytest.MonkeyPatch, *, prepared: bool = True) -> LiveService:
    with monkeypatch.context() as patch:
        patch.setattr("tests.live.service.ROOT", tree)
        return LiveService(var_dir, {"WEB_WORKERS": "1"}, prepared=prepared)


def count_of(service: LiveService) -> int | None:
    answer = service.manage("requests")
    return answer.json()["count"] if answer.status_code == 200 else None


def test_store_of_an_old_revision__refused_unchanged_and_upgraded_by_the_way_that_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    var_dir = tmp_path / "var"
    # This revision does not say when its tables are there.
    old = service_of(tree_of(_OLD, tmp_path), var_dir, monkeypatch, prepared=False)
    project_id, api_key = old.project_id, old.api_key
    for _ in range(_REQUESTS):
        old.openai().chat.completions.create(model="sandbox/echo", messages=[{"role": "user", "content": "Hello"}])
    wait_until(lambda: count_of(old) == _REQUESTS, seconds=START_SECONDS, what="the records in the old store")
    assert old.stop() == 0
    before = sql_dump(var_dir)

    refused = subprocess.run(
        [sys.executable, "manage.py", "serve"],
        cwd=ROOT,
        env=minimal_environment(var_dir),
        capture_output=True,
        text=True,
        timeout=2 * START_SECONDS,
    )

    assert refused.returncode == 1
    assert sql_dump(var_dir) == before
    assert "`manage.py serve` of revision" in refused.stderr and "says `analytics.prepared`" in refused.stderr
    for revision in re.findall(r"of revision (\w+)", refused.stderr):
        between = service_of(tree_of(revision, tmp_path), var_dir, monkeypatch)
        assert between.stop() == 0

    service = service_of(ROOT, var_dir, monkeypatch)
    service.project_id, service.api_key = project_id, api_key
    wait_until(lambda: count_of(service) == _REQUESTS, seconds=START_SECONDS, what="the same records in the new one")
    assert service.stop() == 0
