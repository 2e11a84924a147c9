from __future__ import annotations

from django.apps import AppConfig
from django.urls import register_converter


class CoreConfig(AppConfig):
    name = "core"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from core.audit import recording  # needs all apps loaded
        from core.http.paths import SlashedConverter
        from core.lookup import keys  # noqa: F401 - registers itself
        from core.rights import checks  # noqa: F401 - registers itself; needs all apps loaded

        recording.connect()
        register_converter(SlashedConverter, "slashed")
