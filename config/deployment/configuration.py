from __future__ import annotations

import os
from collections.abc import Iterator

from django.conf import settings

from config.deployment.problem import Problem

_SECRET_CHARACTERS = 32
_LOCAL_HOSTS = {"localhost", "127.0.0.1", "[::1]"}


def check() -> Iterator[Problem]:
    if settings.DEBUG:
        yield Problem("debug", "DEBUG is on: error pages show settings and code to everybody.")
    hosts = set(settings.ALLOWED_HOSTS)
    if "*" in hosts:
        yield Problem("allowed_hosts", "ALLOWED_HOSTS takes every name; name the service's own.", is_fatal=False)
    elif hosts <= _LOCAL_HOSTS:
        message = "ALLOWED_HOSTS names this machine only: the admin, and calls without a key, refuse every other Host."
        yield Problem("allowed_hosts", message, is_fatal=False)
    is_production = os.environ.get("DJANGO_SETTINGS_MODULE", "").endswith(".production")
    if settings.SANDBOX and is_production:
        yield Problem("sandbox", "SANDBOX is on under production settings: its made-up answers serve every project.")
    if len(settings.SECRET_KEY) < _SECRET_CHARACTERS:
        yield Problem("secrets", f"SECRET_KEY has fewer than {_SECRET_CHARACTERS} characters.")
