from __future__ import annotations

from django.apps import AppConfig
from typing_extensions import override


class RolloutsConfig(AppConfig):
    name = "rollouts"
    default_auto_field = "django.db.models.BigAutoField"

    @override
    def ready(self) -> None:
        from rollouts import selectors  # noqa: F401 - registers what finds by id and name; needs the app's models
