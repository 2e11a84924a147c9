from __future__ import annotations

from django.db import models

from core.caller_limits import MONEY_COLUMN_DIGITS, MONEY_COLUMN_PLACES
from core.models import Project
from core.tenancy import ProjectManager

USER_CHARACTERS = 256
MAX_END_USERS = 10_000


class EndUserLimit(models.Model):
    """The limits of one end user by name, in place of the project's for every user. A null limit does not exist."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="end_user_limits")
    user_id = models.CharField(max_length=USER_CHARACTERS)
    monthly_budget_usd = models.DecimalField(
        null=True, blank=True, max_digits=MONEY_COLUMN_DIGITS, decimal_places=MONEY_COLUMN_PLACES
    )
    rate_limit_rpm = models.PositiveIntegerField(null=True, blank=True)
    rate_limit_tpm = models.PositiveIntegerField(null=True, blank=True)
    max_concurrent_requests = models.PositiveIntegerField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    objects = ProjectManager()

    class Meta:
        ordering = ["user_id"]
        verbose_name = "end user's limits"
        verbose_name_plural = "end users' limits"
        constraints = [models.UniqueConstraint(fields=["project", "user_id"], name="one_limit_of_an_end_user")]

    def __str__(self) -> str:
        return self.user_id
