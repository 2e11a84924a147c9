from django.apps import AppConfig
from django.conf import settings

from analytics.shipper.spool_status import oldest_unshipped_seconds
from core.ui.freshness import measure_by


class ConsoleConfig(AppConfig):
    name = "console"

    def ready(self) -> None:
        measure_by(lambda: oldest_unshipped_seconds(settings.SPOOL_DIR))
