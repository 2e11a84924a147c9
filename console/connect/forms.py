from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms

from core.models import NAME_CHARACTERS


class ApplicationKeyForm(forms.Form):
    name = forms.CharField(max_length=NAME_CHARACTERS, label="Name of the application", initial="first application")

    def __init__(self, given: Mapping[str, Any] | None = None) -> None:
        # Another form of the page may have a field of the same name.
        super().__init__(given, auto_id="connect-%s")
