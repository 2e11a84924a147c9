"""The signals that this app sends to the apps above it, which it must not import."""

from __future__ import annotations

from django.dispatch import Signal

# The signal is sent after the commit that changed many prices at once; single rows send Django's own post_save and
# post_delete.
prices_changed = Signal()
# The signal is sent with `project_id` after the commit of a provider's list that differs from the one before.
model_list_changed = Signal()
