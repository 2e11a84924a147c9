from __future__ import annotations

from typing import ClassVar

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from core.encryption import fernet as crypto
from core.rights.asking import actor_of
from core.site.admin import RightsAdmin, RightsInline
from gateway.alerts.secrets import rotate_secret
from gateway.tables.alert import AlertDelivery, AlertSecret, BudgetAlert, OperatorAlert


class DeliveryInline(RightsInline):
    model = AlertDelivery
    fields = ["channel", "state", "attempts", "next_attempt_at", "delivered_at", "last_error"]
    readonly_fields = ["channel", "state", "attempts", "next_attempt_at", "delivered_at", "last_error"]


@admin.register(BudgetAlert)
class BudgetAlertAdmin(RightsAdmin):
    list_display = ["created_at", "project", "month", "threshold_percent", "spent_usd", "budget_usd", "delivery_states"]
    list_select_related = ["project"]
    list_filter = ["threshold_percent", "month"]
    search_fields = ["project__name"]
    inlines = [DeliveryInline]

    def get_queryset(self, request: HttpRequest) -> QuerySet[BudgetAlert]:
        return super().get_queryset(request).prefetch_related("deliveries")

    @admin.display(description="deliveries")
    def delivery_states(self, row: BudgetAlert) -> str:
        return ", ".join(str(delivery) for delivery in row.deliveries.all()) or "-"


@admin.register(AlertSecret)
class AlertSecretAdmin(RightsAdmin):
    list_display = ["project", "created_at", "rotated_at"]
    list_select_related = ["project"]
    search_fields = ["project__name"]
    fields = ["project", "secret", "created_at", "rotated_at"]
    readonly_fields = ["project", "secret", "created_at", "rotated_at"]
    actions = ["rotate"]

    @admin.display(description="secret")
    def secret(self, row: AlertSecret) -> str:
        try:
            return crypto.decrypt(row.token)
        except crypto.UndecryptableSecretError:
            return "cannot be decrypted; rotate it"

    @admin.action(description="Rotate: sign with a new secret from now on", permissions=["change"])
    def rotate(self, request: HttpRequest, queryset: QuerySet[AlertSecret]) -> None:
        for row in queryset:
            rotate_secret(row, actor=actor_of(request.user))
        self.message_user(request, "The receivers need the new secrets.", messages.SUCCESS)


@admin.register(OperatorAlert)
class OperatorAlertAdmin(RightsAdmin):
    project_lookup: ClassVar[str] = ""
    list_display = ["raised_at", "over_at", "kind", "subject", "host", "text"]
    list_filter = ["kind", "host"]
