from django.apps import AppConfig
from typing_extensions import override


class GatewayConfig(AppConfig):
    name = "gateway"
    default_auto_field = "django.db.models.BigAutoField"

    @override
    def ready(self) -> None:
        from gateway import signals  # Models can be imported only once all apps are loaded.

        signals.connect()
