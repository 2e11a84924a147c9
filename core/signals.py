"""What core tells the apps above it, which it must not import."""

from __future__ import annotations

from django.dispatch import Signal

# Sent inside the transaction that made the project; arguments: `project: Project`, `first: bool` (the only project
# of this installation so far).
project_created = Signal()
