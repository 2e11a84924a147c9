"""The interface between apps and monitoring: metrics, and alarms that need a person.

Apps describe `Subject`s. `config.monitor` calls their `ask` in the background, so it may be slow, and shows the latest
answers. Metric names begin with `PREFIX`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from django.db import connection
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from core.encryption.fernet import UndecryptableSecretError, decrypt
from core.encryption.rotation import models_with_secrets
from core.processes.background_tasks import failures_of_host

PREFIX = "prompt_gateway_"

# Where a subject looks, which may keep it waiting.
ON_DISK, IN_DATABASE = "disk", "database"

Found = Mapping[str, Any]
Values = Iterable[tuple[tuple[str, ...], float]]

_MAX_SECRETS = 10_000
# A failure of a background task raises the alarm for this long.
_TASK_SECONDS = 600.0


@dataclass(frozen=True)
class Alarm:
    """A condition that needs a person while it holds.

    Operators are notified after `after` seconds. With `is_shared` every host sees the condition, and one of them
    notifies.
    """

    kind: str
    text: str
    subject: str = ""
    after: float = 0.0
    is_shared: bool = False


def no_metrics(_: Found) -> Iterable[Metric]:
    return ()


def no_alarms(_: Found) -> Iterable[Alarm]:
    return ()


@dataclass(frozen=True)
class Subject:
    """`ask` returns plain JSON and may raise; it is called again `seconds` later, in turn with the subjects that have
    the same `looks`. `metrics` and `alarms` read its result in another process, or in a later run of this one."""

    name: str
    ask: Callable[[], dict[str, Any]]
    seconds: float
    metrics: Callable[[Found], Iterable[Metric]] = no_metrics
    alarms: Callable[[Found], Iterable[Alarm]] = no_alarms
    looks: str = ""


def gauge(name: str, text: str, labels: Iterable[str] = (), values: Values = ()) -> Metric:
    return _filled(GaugeMetricFamily(PREFIX + name, text, labels=list(labels)), values)


def counter(name: str, text: str, labels: Iterable[str] = (), values: Values = ()) -> Metric:
    """Returns a Prometheus counter; Prometheus adds `_total` to the name."""
    return _filled(CounterMetricFamily(PREFIX + name, text, labels=list(labels)), values)


def _filled(family: Any, values: Values) -> Metric:
    for labels, value in values:
        family.add_metric(list(labels), value)
    filled: Metric = family
    return filled


def ping_database() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def _unreadable_secrets() -> dict[str, Any]:
    counts: dict[str, int] = {}
    for model in models_with_secrets():
        counts[model._meta.model_name or ""] = sum(
            1
            for row in model._default_manager.values_list(*_fields(model))[:_MAX_SECRETS]
            if not all(_is_readable(token) for token in row)
        )
    return {"unreadable": counts}


def _fields(model: Any) -> tuple[str, ...]:
    names: tuple[str, ...] = model.encrypted_fields
    return names


def _is_readable(token: str) -> bool:
    try:
        return not token or bool(decrypt(token)) or True
    except UndecryptableSecretError:
        return False


def _secret_metrics(found: Found) -> Iterable[Metric]:
    yield gauge(
        "unreadable_secrets",
        "Stored secrets that no configured encryption key reads.",
        ["model"],
        [((model,), count) for model, count in found["unreadable"].items()],
    )


def _secret_alarms(found: Found) -> Iterable[Alarm]:
    lost = {model: count for model, count in found["unreadable"].items() if count}
    if lost:
        models = ", ".join(f"{count} of {model}" for model, count in sorted(lost.items()))
        yield Alarm(
            "credentials_unreadable",
            f"Stored secrets cannot be read with the keys in ENCRYPTION_KEYS: {models}.",
            is_shared=True,
        )


def _task_failures() -> dict[str, Any]:
    return {name: msgspec.to_builtins(failures) for name, failures in failures_of_host().items()}


def _task_metrics(found: Found) -> Iterable[Metric]:
    yield gauge(
        "background_task_failures",
        "How often a background task failed, in the processes that run.",
        ["task"],
        [((name,), failures["count"]) for name, failures in found.items()],
    )


def _task_alarms(found: Found) -> Iterable[Alarm]:
    for name, failures in found.items():
        if time.time() - failures["alarming"] < _TASK_SECONDS:
            text = f"The background task {name} failed, the last time with {failures['error']}: see the log."
            yield Alarm("background_task_failed", text, name)


TASKS = Subject("tasks", _task_failures, 5.0, _task_metrics, _task_alarms, ON_DISK)
SECRETS = Subject("secrets", _unreadable_secrets, 60.0, _secret_metrics, _secret_alarms, IN_DATABASE)
