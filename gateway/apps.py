from django.apps import AppConfig


class GatewayConfig(AppConfig):
    name = "gateway"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # Models can be imported only once all apps are loaded.
        from gateway import signals
        from rollouts.gate.registry import register
        from rollouts.models import Gate
        from rollouts.quality import defaults as thresholds

        signals.connect()
        register(Gate.EXPERIMENT, "gateway.experiments.gate.experiment_gate")
        thresholds.register("gateway.selectors.rollout_thresholds")
        register(Gate.SHADOW, "gateway.shadow.gate.shadow_gate", "gateway.shadow.services.ShadowWork")
