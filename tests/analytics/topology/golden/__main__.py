"""`python -m tests.analytics.topology.golden` writes the golden texts anew."""

from __future__ import annotations

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.test")
django.setup()

from tests.analytics.topology import golden  # noqa: E402 - the settings come first

for mode in golden.MODES:
    golden.path(mode).write_text(golden.describe(mode), encoding="utf-8")
