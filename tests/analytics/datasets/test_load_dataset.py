"""`manage.py load_dataset` adds a file to a set that is there or that it makes, all of it or nothing."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from analytics.models import Dataset
from core.models import Project
from tests.factories.datasets import item_body, make_dataset

pytestmark = pytest.mark.django_db


def load(path: Path, project: Project, dataset: str) -> tuple[str, str]:
    out, progress = io.StringIO(), io.StringIO()
    call_command("load_dataset", str(path), project=str(project.pk), dataset=dataset, stdout=out, stderr=progress)
    return out.getvalue(), progress.getvalue()


def test_load__into_a_new_set_and_one_that_is_there__says_what_was_added(project: Project, tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    path.write_text("\n".join(json.dumps(item_body(f"Item {place}")) for place in range(2_000)))
    known = make_dataset(project, items=1)

    out, progress = load(path, project, "From a file")
    load(path, project, known.name)

    assert out == "2000 items are new in From a file, version 1.\n"
    assert progress.splitlines() == ["1000 lines", "2000 lines"]
    assert sorted(Dataset.objects.values_list("item_count", flat=True)) == [2_000, 2_001]


def test_load__torn_line__names_it_and_makes_no_set(project: Project, tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    path.write_text(json.dumps(item_body()) + '\n{"messages": [')

    with pytest.raises(CommandError, match="line 2: Is not JSON"):
        load(path, project, "New")

    assert not Dataset.objects.exists()


def test_load__no_file__is_said(project: Project, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="No such file"):
        load(tmp_path / "none.jsonl", project, "New")
