"""Raises an alert for a rollout whose target does worse at 100 % than the previous version (docs/rollouts.md)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from core.http.addresses import public_url
from core.ui.navigation import address_if_there
from gateway.alerts.messages import one_line, utc
from gateway.alerts.recipients import deliveries_of_project
from gateway.tables.alert import AlertDelivery
from gateway.tables.figure_alert import AlertEvent
from rollouts.models import Rollout
from rollouts.watch.shown import labels_of

logger = logging.getLogger("gateway.alerts")


def raise_of_watch(rollout: Rollout, names: Sequence[str], at: datetime, **_: Any) -> None:
    """Saves the event with its deliveries in the caller's transaction, so that each warning is sent once."""
    event = AlertEvent(project_id=rollout.project_id, rollout=rollout, kind=AlertEvent.Kind.ROLLOUT)
    project, name = one_line(rollout.project.name), one_line(rollout.name)
    worse_in = ", ".join(labels_of(names))
    sentence = f"The target of the rollout {name} does worse at 100 % than the version before it: {worse_in}."
    page = public_url() + address_if_there("rollouts_rollout_change", rollout.pk)
    event.subject = f"{project}: rollout {name} does worse at 100 %"
    event.text = f"{sentence}\nNothing was changed.\n{page}\n"
    event.content = {
        "type": "rollout.watch",
        "id": str(event.pk),
        "project_id": str(rollout.project_id),
        "project_name": rollout.project.name,
        "rollout_id": str(rollout.pk),
        "rollout_name": rollout.name,
        "metrics": list(names),
        "message": sentence,
        "url": page,
        "at": utc(at),
    }
    event.save(force_insert=True)
    AlertDelivery.objects.bulk_create(deliveries_of_project(event))
    logger.warning("rollout.watch_alerted project_id=%s rollout_id=%s", rollout.project_id, rollout.pk)
