from __future__ import annotations

from django.dispatch import Signal

# The signal is sent with `rollout`, `names` (of metrics and evaluators) and `at` in the transaction that keeps a
# warning of the watch at 100 %.
watch_warned = Signal()
