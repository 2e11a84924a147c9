from django.apps import AppConfig


class GatewayConfig(AppConfig):
    name = "gateway"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # Models can be imported only once all apps are loaded.
        from gateway import signals
        from rollouts.gate.registry import register
        from rollouts.models import Gate

        signals.connect()
        register(Gate.EXPERIMENT, "gateway.experiments.gate.experiment_gate")
        register(Gate.SHADOW, "gateway.shadow.gate.shadow_gate", "gateway.shadow.services.ShadowWork")
