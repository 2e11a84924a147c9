from __future__ import annotations

import logging
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from integrations.errors import SyncBrokenOffError, SyncRunningError
from integrations.pricing.entries import CatalogError
from integrations.pricing.fetch import fetch, is_address
from integrations.pricing.models import CatalogPrice, CatalogState, PriceSyncLog
from integrations.pricing.reading import READER, READERS, Reading, read_catalog
from integrations.pricing.table import TableChange, lock_table, rebuild, replace_catalog

# A run takes seconds, and at most the time limits of both catalogs, so a run that is ten minutes old has crashed.
LEASE = timedelta(minutes=10)
_LISTED_ERRORS = 100
# A catalog of at least 100 models that lost more than half of them was probably truncated.
_MIN_MODELS_TO_COMPARE = 100

_Status, _Trigger = PriceSyncLog.Status, PriceSyncLog.Trigger
logger = logging.getLogger("integrations.pricing")


@dataclass(frozen=True, slots=True)
class CatalogOutcome:
    source: str
    location: str
    reading: Reading | None = None
    etag: str = ""
    problem: str = ""

    @property
    def status(self) -> str:
        return "failed" if self.problem else "not_modified" if self.reading is None else "read"


def sync_prices(
    *, trigger: PriceSyncLog.Trigger, actor: str = "", catalogs: Mapping[str, str] | None = None
) -> PriceSyncLog:
    """Runs the sync now; a failed catalog is listed in the log and raises nothing. `catalogs` maps sources to addresses
    or files, by default settings.PRICING_CATALOGS. Raises SyncRunningError."""
    log = _begin(trigger, actor)
    try:
        outcomes = _outcomes(settings.PRICING_CATALOGS if catalogs is None else catalogs)
        with transaction.atomic():
            _store(log, outcomes)
    except Exception as error:
        _mark_failed(log, type(error).__name__)
        raise
    logger.info("sync.%s sync_id=%d added=%d updated=%d", log.status, log.pk, log.added, log.updated)
    return log


def _begin(trigger: PriceSyncLog.Trigger, actor: str) -> PriceSyncLog:
    now = timezone.now()
    broken = PriceSyncLog.objects.filter(status=_Status.RUNNING, started_at__lt=now - LEASE)
    broken.update(status=_Status.FAILED, finished_at=now, errors=[_error("", "The run was broken off.")])
    try:
        with transaction.atomic():
            return PriceSyncLog.objects.create(trigger=trigger, started_by=actor[:200], started_at=now)
    except IntegrityError as error:
        raise SyncRunningError("Prices are being synced at the moment; its result will be in the history.") from error


def _outcomes(catalogs: Mapping[str, str]) -> list[CatalogOutcome]:
    states = {row.source: row for row in CatalogState.objects.all()}
    configured = [(source, catalogs[source], states.get(source)) for source in READERS if catalogs.get(source)]
    # The catalogs are fetched in parallel, so that a slow one does not delay the other. The threads make no database
    # calls.
    with ThreadPoolExecutor(max_workers=len(READERS)) as pool:
        return list(pool.map(lambda one: _outcome(*one), configured))


def _outcome(source: str, location: str, state: CatalogState | None) -> CatalogOutcome:
    known = state is not None and state.url == location and state.reader == READER
    try:
        fetched = fetch(location, etag=state.etag if state is not None and known else "")
        if fetched is None:
            return CatalogOutcome(source, location)
        return CatalogOutcome(source, location, read_catalog(source, fetched.body), fetched.etag)
    except CatalogError as error:
        return CatalogOutcome(source, location, problem=str(error))


def _store(log: PriceSyncLog, outcomes: list[CatalogOutcome]) -> None:
    states = lock_table()
    if not PriceSyncLog.objects.select_for_update().filter(pk=log.pk, status=_Status.RUNNING).exists():
        raise SyncBrokenOffError("The run took so long that it was considered dead.")
    outcomes = [_checked(outcome, states[outcome.source]) for outcome in outcomes]
    for outcome in outcomes:
        if outcome.reading is not None:
            replace_catalog(outcome.source, outcome.reading)
            _remember(states[outcome.source], outcome, outcome.reading)
    refused = {key for outcome in outcomes if outcome.reading is not None for key in outcome.reading.refused}
    _finish(log, outcomes, rebuild(f"sync:{log.pk}", refused))


def _checked(outcome: CatalogOutcome, state: CatalogState) -> CatalogOutcome:
    """Returns a problem for a reading that would end most prices. The check needs an earlier reading from the same
    address: the shipped list and another address prove nothing."""
    if outcome.reading is None or state.models_count < _MIN_MODELS_TO_COMPARE or state.url != outcome.location:
        return outcome
    known = CatalogPrice.objects.filter(source=outcome.source).values_list("provider", "model")
    left = sum(key in outcome.reading.entries or key in outcome.reading.refused for key in known)
    if left * 2 >= state.models_count:
        return outcome
    problem = f"it has only {left} of {state.models_count} models left"
    return CatalogOutcome(outcome.source, outcome.location, problem=problem)


def _remember(state: CatalogState, outcome: CatalogOutcome, reading: Reading) -> None:
    state.url = outcome.location if is_address(outcome.location) else ""
    state.etag, state.reader = outcome.etag, READER
    state.models_count, state.read_at = len(reading.entries), timezone.now()
    state.save()


def _finish(log: PriceSyncLog, outcomes: list[CatalogOutcome], change: TableChange) -> None:
    failed = sum(bool(outcome.problem) for outcome in outcomes)
    log.status = _Status.SUCCESS if not failed else _Status.FAILED if failed == len(outcomes) else _Status.PARTIAL
    log.added, log.updated, log.removed, log.skipped = change.added, change.updated, change.removed, change.skipped
    log.errors = _errors(outcomes)
    log.catalogs = {outcome.source: _summary(outcome) for outcome in outcomes}
    log.finished_at = timezone.now()
    log.save()
    for outcome in outcomes:
        if outcome.problem:
            logger.error("catalog.failed sync_id=%d source=%s problem=%s", log.pk, outcome.source, outcome.problem)


def _summary(outcome: CatalogOutcome) -> dict[str, object]:
    reading = outcome.reading
    counts = {"models": len(reading.entries), "refused": len(reading.refused)} if reading is not None else {}
    return {"status": outcome.status, **counts}


def _errors(outcomes: list[CatalogOutcome]) -> list[dict[str, str]]:
    found = [_error(outcome.source, outcome.problem) for outcome in outcomes if outcome.problem]
    for outcome in outcomes:
        for refusal in outcome.reading.refused.values() if outcome.reading is not None else ():
            found.append(_error(outcome.source, refusal.problem, f"{refusal.provider}/{refusal.model}"))
    if len(found) > _LISTED_ERRORS:
        left_out = len(found) - _LISTED_ERRORS
        found = [*found[:_LISTED_ERRORS], _error("", f"{left_out} more are not listed.")]
    return found


def _error(source: str, message: str, model: str = "") -> dict[str, str]:
    return {"source": source, "model": model, "message": message}


def _mark_failed(log: PriceSyncLog, reason: str) -> None:
    logger.error("sync.broken_off sync_id=%d error=%s", log.pk, reason)
    PriceSyncLog.objects.filter(pk=log.pk, status=_Status.RUNNING).update(
        status=_Status.FAILED, finished_at=timezone.now(), errors=[_error("", "The service failed unexpectedly.")]
    )
