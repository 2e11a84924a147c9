from __future__ import annotations

from django.apps import AppConfig


class RolloutsConfig(AppConfig):
    name = "rollouts"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from rollouts import selectors  # noqa: F401 - registers what finds by id and name; needs the app's models
