from __future__ import annotations

from collections.abc import Sequence
from smtplib import SMTPException

from django.conf import settings
from django.core.mail import send_mail

from gateway.alerts.errors import DeliveryError

_SMTP = "django.core.mail.backends.smtp.EmailBackend"


def send_email(subject: str, text: str, addresses: Sequence[str]) -> None:
    if settings.EMAIL_BACKEND == _SMTP and not settings.EMAIL_HOST:
        raise DeliveryError("no mail server is configured (EMAIL_HOST)", is_final=True)
    try:
        send_mail(subject, text, settings.DEFAULT_FROM_EMAIL, addresses)
    except (SMTPException, OSError) as error:
        raise DeliveryError(type(error).__name__) from None
