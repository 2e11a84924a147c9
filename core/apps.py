from __future__ import annotations

from django.apps import AppConfig
from django.urls import register_converter
from typing_extensions import override


class CoreConfig(AppConfig):
    name = "core"
    default_auto_field = "django.db.models.BigAutoField"

    @override
    def ready(self) -> None:
        from core import key_lookup  # noqa: F401 - registers itself
        from core.audit import recording  # needs all apps loaded
        from core.paths import SlashedConverter
        from core.rights import checks  # noqa: F401 - registers itself; needs all apps loaded

        recording.connect()
        register_converter(SlashedConverter, "slashed")
