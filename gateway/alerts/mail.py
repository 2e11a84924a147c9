"""Sends alerts by e-mail."""

from __future__ import annotations

from collections.abc import Sequence
from smtplib import SMTPException

from django.conf import settings
from django.core.mail import send_mail

from gateway.alerts.errors import DeliveryError
from gateway.tables.alert import BudgetAlert

_SMTP = "django.core.mail.backends.smtp.EmailBackend"


def send(alert: BudgetAlert, addresses: Sequence[str]) -> None:
    """Sends a budget alert. Raises DeliveryError."""
    # A line break in a subject would begin another header.
    project = " ".join(alert.project.name.split())
    subject = f"{project}: {alert.threshold_percent} % of the budget of {alert.month} is used"
    text = (
        f"Project {project} ({alert.project_id}) has spent {alert.spent_usd:.2f} USD of its budget of "
        f"{alert.budget_usd:.2f} USD for {alert.month} (UTC), which is {alert.threshold_percent} % or more.\n"
    )
    send_email(subject, text, addresses)


def send_email(subject: str, text: str, addresses: Sequence[str]) -> None:
    """Sends an e-mail. Raises DeliveryError."""
    if settings.EMAIL_BACKEND == _SMTP and not settings.EMAIL_HOST:
        raise DeliveryError("no mail server is configured (EMAIL_HOST)", is_final=True)
    try:
        send_mail(subject, text, settings.DEFAULT_FROM_EMAIL, addresses)
    except (SMTPException, OSError) as error:
        raise DeliveryError(type(error).__name__) from None
