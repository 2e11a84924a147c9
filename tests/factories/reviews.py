from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import count
from typing import Any
from uuid import uuid4

from analytics.models import ReviewItem, ReviewQueue
from core.models import Project

_serial = count(1)


def queue_body(**values: Any) -> dict[str, Any]:
    return {"name": f"queue-{next(_serial)}", "score_name": "helpful", "kind": "boolean", **values}


def make_queue(
    project: Project, *, items: int = 3, request_ids: Iterable[str] | None = None, **values: Any
) -> ReviewQueue:
    """Without `request_ids`, names `items` requests that are stored nowhere."""
    queue = ReviewQueue.objects.create(project=project, **{**queue_body(sample_size=100), **values})
    ids = [str(uuid4()) for _ in range(items)] if request_ids is None else list(request_ids)
    ReviewItem.objects.bulk_create(
        ReviewItem(queue=queue, position=position, request_id=request_id, ts=datetime.now(UTC))
        for position, request_id in enumerate(ids, 1)
    )
    return queue
