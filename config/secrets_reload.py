"""Applies new values of variables given by files or commands to the settings of a running process.

Code reads Django's settings object whenever it needs a value, so new values are set there. Open connections stay
unchanged; those of `serve`'s children end with the children, which are replaced.
"""

from __future__ import annotations

import copy
import importlib
import os
import sys
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.db import connections

from config import env
from config.celery import app

_PACKAGE = "config.settings"


def apply(values: Mapping[str, str]) -> dict[str, str]:
    """Reads the settings again with these values of `env.read_again`, and returns the former values.

    Raises InvalidVariable and changes nothing if a setting refuses its value.
    """
    former = env.give(values)
    try:
        fresh = _read_settings()
    except env.InvalidVariable:
        env.give(former)
        raise
    for name, value in fresh.items():
        if value != getattr(settings, name, None):
            setattr(settings, name, value)
    for alias, options in connections.configure_settings(copy.deepcopy(settings.DATABASES)).items():
        # Connections of all threads hold this dictionary, and open with it the next time.
        connections.settings[alias].update(options)
    app.config_from_object("django.conf:settings", namespace="CELERY")
    return former


def _read_settings() -> dict[str, Any]:
    config = sys.modules["config"]
    former = {name: module for name, module in sys.modules.items() if f"{name}.".startswith(f"{_PACKAGE}.")}
    _forget_settings()
    try:
        module = importlib.import_module(os.environ["DJANGO_SETTINGS_MODULE"])
    finally:
        _forget_settings()
        sys.modules.update(former)
        config.settings = former[_PACKAGE]  # type: ignore[attr-defined]  # the import has set the new package
    return {name: getattr(module, name) for name in dir(module) if name.isupper()}


def _forget_settings() -> None:
    for name in [name for name in sys.modules if f"{name}.".startswith(f"{_PACKAGE}.")]:
        del sys.modules[name]
