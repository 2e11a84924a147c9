"""Deletes the texts of requests, also those that they share with others, as far as no request that stays has them.

A shared text has a copy for each day of expiry of its requests. A copy goes if it would outlive them. Before an erasure
looks which requests there are, it counts itself: a shipper whose requests it does not see yet finds another count than
it knew, and stores their texts again (`analytics/shipper/shared_texts.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any
from uuid import UUID

from analytics.clickhouse import client
from analytics.deletion.vocabulary import Doomed, forget_words
from analytics.reconciliation.comparison import LIMITS
from core.chunks import chunks

_AT_ONCE = 1_000
_SHARED = "SELECT DISTINCT arrayJoin(shared) FROM payloads WHERE {where}"
_KEPT_UNTIL = """
SELECT text_id, max(drop_date) FROM (
    SELECT drop_date, arrayJoin(arrayIntersect(shared, {{texts:Array(UUID)}})) AS text_id FROM payloads
    WHERE project_id = {{project:UUID}} AND hasAny(shared, {{texts:Array(UUID)}}) AND NOT ({where})
) GROUP BY text_id
"""
_EPOCH = "SELECT count() FROM text_erasures WHERE project_id = {project:UUID}"
_COPIES = """project_id = {project:UUID} AND text_id IN {texts:Array(UUID)} AND epoch < {epoch:UInt32}
    AND drop_date > arrayElement({kept_until:Array(Date)}, indexOf({texts:Array(UUID)}, text_id))"""
_NO_COPIES = "0"
_NEVER = date(1970, 1, 1)


def delete_texts(project_id: UUID, where: str, parameters: Mapping[str, Any], *, token: str) -> None:
    """Deletes the texts of the requests of the condition, with the words that no other text of the project has.

    Idempotent. The requests lose their own texts last, so that a second try finds what a first one has left.
    """
    sql = _SHARED.format(where=where)
    shared = [text for (text,) in client.execute(sql, parameters, settings=LIMITS, fresh=("payloads",))]
    if shared:
        client.insert("text_erasures", ("project_id",), [(project_id,)], token=token)
        [(epoch,)] = client.execute(_EPOCH, {"project": project_id}, settings=LIMITS, fresh=("text_erasures",))
        for copies in _copies(where, {**parameters, "epoch": epoch}, shared):
            forget_words(Doomed(project_id, {"payloads": where, "shared_texts": _COPIES}, copies), "shared_texts")
            client.execute(f"DELETE FROM shared_texts WHERE {_COPIES}", copies, settings=LIMITS)
    forget_words(Doomed(project_id, {"payloads": where, "shared_texts": _NO_COPIES}, parameters), "payloads")
    client.execute(f"DELETE FROM payloads WHERE {where}", dict(parameters), settings=LIMITS)


def _copies(where: str, parameters: Mapping[str, Any], shared: Sequence[UUID]) -> Iterator[dict[str, Any]]:
    """Yields the parameters of the copies to delete."""
    sql = _KEPT_UNTIL.format(where=where)
    for some in chunks(shared, _AT_ONCE):
        own = {**parameters, "texts": [str(text) for text in some]}
        kept: dict[UUID, date] = dict(client.execute(sql, own, settings=LIMITS, fresh=("payloads",)))
        yield {**own, "kept_until": [str(kept.get(text, _NEVER)) for text in some]}
