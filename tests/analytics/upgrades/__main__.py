"""`python -m tests.analytics.upgrades FOLDER` runs `manage.py migrate_analytics` with the migrations of a folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import django
from django.core.management import call_command

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.base")
    django.setup()
    from analytics.clickhouse import migrator

    migrator.MIGRATIONS = Path(sys.argv[1])
    call_command("migrate_analytics")
