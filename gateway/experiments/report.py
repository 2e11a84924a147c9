"""What an experiment found. Until reports are written, no experiment stops early."""

from __future__ import annotations

from uuid import UUID


def look(experiment_id: UUID) -> bool:
    """Looks at the verdict after a further item, and returns whether the experiment may stop."""
    return False


def conclude(experiment_id: UUID) -> None:
    """Writes the report and the verdict of an experiment that has ended."""
