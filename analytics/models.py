"""Tables of the SQL database. What happened is in ClickHouse; the admin needs a model to hang its pages on."""

from __future__ import annotations

from django.db import models
from typing_extensions import override


class Requests(models.Model):
    """The request log as the admin sees it. There is no such table: `analytics.admin` asks ClickHouse."""

    class Meta:
        managed = False
        default_permissions = ("view",)
        verbose_name = "request"
        verbose_name_plural = "requests"

    @override
    def __str__(self) -> str:
        return "request log"
