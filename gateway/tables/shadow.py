from __future__ import annotations

from django.db import models

from gateway.tables.experiment import Experiment


class SkipReason(models.TextChoices):
    NO_STORE = "no_store"  # Its client wants nothing of it kept.
    MASKED = "masked"  # A guardrail masked something in it.
    NO_TEXT = "no_text"  # Its texts are not stored, or cannot be read.
    CACHED = "cached"  # Its answer came from the response cache, which is that to an earlier request.
    NOT_REPEATABLE = "not_repeatable"  # It said more than what can be asked again.
    PROVIDER_TOOLS = "provider_tools"  # It has tools that the provider would execute.
    UNKNOWN_COST = "unknown_cost"  # What the target may cost at most is not known.
    BACKLOG = "backlog"  # Others waited, or there were enough.


class Shadow(models.Model):
    """Follows the request log and gives an experiment its items. `skipped` counts by `SkipReason`."""

    experiment = models.OneToOneField(Experiment, on_delete=models.CASCADE, related_name="shadow", primary_key=True)
    prompt_config_id = models.UUIDField()
    baseline_number = models.PositiveIntegerField()
    rate = models.FloatField()
    # Requests that came before are not sampled.
    since = models.DateTimeField()
    # All that was recorded before has been looked at.
    followed_until = models.DateTimeField()
    taken = models.PositiveIntegerField(default=0)
    skipped = models.JSONField(default=dict)

    class Meta:
        ordering = ["experiment_id"]

    def __str__(self) -> str:
        return f"shadow {self.experiment_id}"
