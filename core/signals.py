"""Signals by which core notifies the apps above it, which it must not import."""

from __future__ import annotations

from django.dispatch import Signal

# The signal is sent inside the transaction that made the project, with `project: Project` and `first: bool` (it is the
# only project of this installation so far, and no file says which providers it has).
project_created = Signal()
