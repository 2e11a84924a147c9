"""A lease in the SQL database: one process holds it, and another takes it after that one is gone.

The database's clock alone decides when a lease ends. The holder counts the time since it asked, so host clocks do not
matter, and it stops believing in its lease before the database would give it away.
"""

from __future__ import annotations

from datetime import timedelta

from django.db.models import Q
from django.db.models.functions import Now

from core.fleet.tables import Lease

# The part of whoever schedules Celery's tasks.
BEAT = "beat"

# Who asks each 5 s takes over within 25 s of the holder's last word.
LEASE_SECONDS = 20.0
RENEW_SECONDS = 5.0


def take(name: str, holder: str) -> bool:
    """Takes or renews the lease; returns whether `holder` has it now. Raises the database's errors."""
    has_ended = Q(holder="") | Q(renewed_at__lt=Now() - timedelta(seconds=LEASE_SECONDS))
    may_be_taken = Lease.objects.filter(name=name).filter(Q(holder=holder) | has_ended)
    if may_be_taken.update(holder=holder, renewed_at=Now()):
        return True
    _, was_made = Lease.objects.get_or_create(name=name, defaults={"holder": holder, "renewed_at": Now()})
    return was_made


def give_back(name: str, holder: str) -> None:
    Lease.objects.filter(name=name, holder=holder).update(holder="")


def state(name: str) -> tuple[str, float] | None:
    """Returns the holder and the seconds since its renewal by the database's clock; None if nobody ever held the lease.
    Raises the database's errors."""
    row = Lease.objects.filter(name=name).annotate(now=Now()).first()
    return None if row is None else (row.holder, (row.now - row.renewed_at).total_seconds())
