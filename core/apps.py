from django.apps import AppConfig
from typing_extensions import override


class CoreConfig(AppConfig):
    name = "core"
    default_auto_field = "django.db.models.BigAutoField"

    @override
    def ready(self) -> None:
        from core.rights import checks  # noqa: F401 - registers itself; needs all apps loaded
