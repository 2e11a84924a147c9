"""Runs the monitor in threads of the `serve` process, which depends on none of the processes that it monitors."""

from __future__ import annotations

import logging

from django.conf import settings

from config.monitor.alarms import Alarms
from config.monitor.endpoint import Endpoint
from config.monitor.subjects import SUBJECTS
from config.monitor.watch import Monitor
from core.processes.monitoring import Subject
from gateway.alerts.operators import OperatorAlerts

logger = logging.getLogger("config.monitor")


class HostMonitor:
    """The monitor of a host: call `listen`, then `start` once the tables exist, and `stop` at the end."""

    def __init__(self, *own: Subject) -> None:
        """`own` are the subjects of the process in which the monitor runs."""
        self._own = own
        self._endpoint: Endpoint | None = None
        self._monitor: Monitor | None = None

    def listen(self) -> str | None:
        """Returns the address of `/metrics`, or None without METRICS_PORT. Raises OSError when the address is taken."""
        if settings.METRICS_PORT is None:
            return None
        self._endpoint = Endpoint(settings.METRICS_HOST, settings.METRICS_PORT)
        return self._endpoint.url

    def start(self) -> None:
        operators = OperatorAlerts(settings.HOST_NAME)
        alarms = Alarms(operators.report, clear_seconds=settings.OPERATOR_ALERT_CLEAR_SECONDS)
        self._monitor = Monitor((*SUBJECTS, *self._own), alarms, operators.open_alarms)
        self._monitor.start()

    def stop(self) -> None:
        if self._monitor is not None:
            self._monitor.stop()
        if self._endpoint is not None:
            self._endpoint.close()
