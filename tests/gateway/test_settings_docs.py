"""The tables of docs/settings.md are what `manage.py describe_settings` makes of the declarations."""

from __future__ import annotations

from pathlib import Path

from gateway.management.commands.describe_settings import describe
from gateway.project_settings.declaration import parts
from gateway.project_settings.settings import ProjectSettings

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "settings.md"


def test_page__tables__are_the_declared_settings() -> None:
    page = PAGE.read_text()

    assert page == describe(page), "docs/settings.md is not up to date: manage.py describe_settings --write"
    assert all(f"\n| `{one.path}` | " in page for one in parts(ProjectSettings))
