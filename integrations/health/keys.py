"""The Redis keys of health. The braces keep one integration's keys on one node of a cluster.

A slice is a hash of the fields of `window`, `models` is a sorted set of the models with outcomes, scored by slice, and
a circuit is a packed CircuitRecord. Every key expires.
"""

from __future__ import annotations

from integrations.health.targets import Target

# The channel's name contains the version of the messages, since workers of different releases run side by side during
# an upgrade.
CHANNEL = "svc:health:1"


def models_key(integration_id: int) -> str:
    return f"{{health:{integration_id}}}:models"


def slice_key(integration_id: int, model: str, number: int) -> str:
    return f"{{health:{integration_id}}}:{number}:{model}"


def minute_key(integration_id: int, minute: int) -> str:
    return f"{{health:{integration_id}}}:minute:{minute}"


def circuit_key(integration_id: int, model: str) -> str:
    return f"{{health:{integration_id}}}:circuit:{model}"


def probe_key(target: Target, version: int) -> str:
    """Every opening of a circuit has its own key for the probe's claim, so that the claim ends with it."""
    return f"{{health:{target.integration_id}}}:probe:{version}:{target.model}"
