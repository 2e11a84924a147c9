from __future__ import annotations

from itertools import count
from typing import Any

from analytics.datasets.items import read_item
from analytics.datasets.services import add_items, create_dataset
from analytics.models import Dataset
from core.models import Project

_serial = count(1)


def item_body(text: str = "What is the capital of France?", **values: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}], **values}


def make_dataset(project: Project, *, items: int = 3, about: str = "", **values: Any) -> Dataset:
    given = {"name": f"set-{next(_serial)}", **values}
    dataset = create_dataset(project_id=project.pk, actor="user:maker", **given)
    if items:
        bodies = [item_body(f"Question {place}{about}", expected=f"Answer {place}") for place in range(1, items + 1)]
        made = [read_item(body) for body in bodies]
        add_items(project_id=project.pk, dataset_id=dataset.pk, items=made, actor="user:maker")
        dataset.refresh_from_db()
    return dataset
