"""The scopes of a new API key as a field of a form."""

from __future__ import annotations

from typing import Any

from django import forms

from core.rights.scopes import DESCRIPTIONS, GATEWAY, MANAGE

_ADMINISTRATION = "Only for what administers the project:"


class ScopesField(forms.MultipleChoiceField):
    """Boxes of all scopes, of which `manage` stands apart. Without a choice a key has `gateway` alone."""

    widget = forms.CheckboxSelectMultiple

    def __init__(self) -> None:
        choices = {scope: (scope, f"{scope}: {sentence}") for scope, sentence in DESCRIPTIONS.items()}
        manage = choices.pop(MANAGE)
        super().__init__(
            choices=[*choices.values(), (_ADMINISTRATION, [manage])],
            initial=[GATEWAY],
            required=False,
            help_text=f"None ticked: {GATEWAY}.",
        )

    def clean(self, value: Any) -> list[str]:
        return super().clean(value) or [GATEWAY]
