from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gateway.tables.alert import AlertDelivery, BudgetAlert
from gateway.tables.figure_alert import AlertEvent


@dataclass(frozen=True, slots=True)
class Message:
    subject: str
    text: str
    content: Mapping[str, Any]

    def body(self) -> bytes:
        """Returns the webhook's body. Its `id` is the same at every attempt, so that receivers can drop duplicates."""
        return json.dumps(self.content, separators=(",", ":")).encode()


def message_of(row: AlertDelivery) -> Message:
    about = row.about
    return _of_budget(about) if isinstance(about, BudgetAlert) else _of_event(about)


def one_line(text: str) -> str:
    """Removes line breaks: in a subject, one would start another header."""
    return " ".join(text.split())


def utc(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


def _of_event(event: AlertEvent) -> Message:
    return Message(event.subject, event.text, event.content)


def _of_budget(alert: BudgetAlert) -> Message:
    project = one_line(alert.project.name)
    content = {
        "type": "budget.alert",
        "id": f"{alert.project_id}/{alert.month}/{alert.threshold_percent}",
        "project_id": str(alert.project_id),
        "project_name": alert.project.name,
        "month": alert.month,
        "threshold_percent": alert.threshold_percent,
        "budget_usd": float(alert.budget_usd),
        "spent_usd": float(alert.spent_usd),
        "created_at": utc(alert.created_at),
    }
    text = (
        f"Project {project} ({alert.project_id}) has spent {alert.spent_usd:.2f} USD of its budget of "
        f"{alert.budget_usd:.2f} USD for {alert.month} (UTC), which is {alert.threshold_percent} % or more.\n"
    )
    return Message(f"{project}: {alert.threshold_percent} % of the budget of {alert.month} is used", text, content)
