from __future__ import annotations

import argparse
import os

from benchmarks.analytics_store import Store


def positive_number(text: str) -> int:
    value = int(text.replace("_", "").replace(",", ""))
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def set_up_django(measured: Store, **more: str) -> None:
    os.environ.update(
        {
            "DJANGO_SETTINGS_MODULE": "config.settings.base",
            "VAR_DIR": str(measured.folder),
            "DATABASE_URL": f"sqlite:///{measured.folder / 'benchmark.sqlite3'}",
            "CLICKHOUSE_URL": measured.url,
            **more,
        }
    )
    import django

    django.setup()
