from django.apps import AppConfig


class GatewayConfig(AppConfig):
    name = "gateway"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # Models can be imported only once all apps are loaded.
        from gateway import signals
        from gateway.experiments.gate import experiment_gate
        from gateway.shadow.gate import shadow_gate
        from gateway.shadow.services import ShadowWork
        from rollouts.gate.registry import register
        from rollouts.models import Gate

        signals.connect()
        register(Gate.EXPERIMENT, experiment_gate)
        register(Gate.SHADOW, shadow_gate, ShadowWork())
