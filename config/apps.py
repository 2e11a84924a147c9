from django.apps import AppConfig


class ConfigConfig(AppConfig):
    name = "config"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from config.prompt_usage import usage_by_version  # Django's checks need all apps to be loaded.
        from prompts.usage import read_usage_from

        read_usage_from(usage_by_version)
