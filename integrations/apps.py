from django.apps import AppConfig


class IntegrationsConfig(AppConfig):
    name = "integrations"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # Models can be imported only after Django has loaded the apps, which is now.
        from core.signals import project_created
        from integrations.environment import import_into_first_project

        project_created.connect(import_into_first_project, dispatch_uid="integrations.environment")
