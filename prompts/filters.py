from __future__ import annotations

import json

from django import forms
from django.db.models import Q, QuerySet
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema_field

from prompts.models import NAME_CHARACTERS, PromptActivation, PromptConfig, PromptVersion

_SEARCH_CHARACTERS = 200
_BOOLEANS = [("true", "true"), ("false", "false")]


class WholeNumberFilter(filters.Filter):  # type: ignore[misc]  # the package has no types
    field_class = forms.IntegerField


class ConfigFilter(filters.FilterSet):  # type: ignore[misc]  # the package has no types
    name = filters.CharFilter(max_length=NAME_CHARACTERS)
    search = filters.CharFilter(method="find", max_length=_SEARCH_CHARACTERS)
    # django-filter's BooleanFilter treats any other text as no filter.
    has_active_rollout = extend_schema_field({"type": "string", "enum": ["true", "false"]})(
        filters.TypedChoiceFilter(choices=_BOOLEANS, coerce=lambda value: value == "true")
    )

    class Meta:
        model = PromptConfig
        fields: tuple[str, ...] = ()

    def find(self, configs: QuerySet[PromptConfig], name: str, value: str) -> QuerySet[PromptConfig]:
        return configs.filter(Q(name__icontains=value) | Q(description__icontains=value))


class VersionFilter(filters.FilterSet):  # type: ignore[misc]  # the package has no types
    version_number = WholeNumberFilter(field_name="number")
    search = filters.CharFilter(method="find", max_length=_SEARCH_CHARACTERS)

    class Meta:
        model = PromptVersion
        fields: tuple[str, ...] = ()

    def find(self, versions: QuerySet[PromptVersion], name: str, value: str) -> QuerySet[PromptVersion]:
        # The messages are searched as their JSON, in which a text has its line ends and quotation marks escaped.
        written = json.dumps(value, ensure_ascii=False)[1:-1]
        in_texts = Q(system_prompt__icontains=value) | Q(messages__icontains=written)
        return versions.filter(in_texts | Q(commit_message__icontains=value))


class ActivationFilter(filters.FilterSet):  # type: ignore[misc]  # the package has no types
    kind = filters.ChoiceFilter(choices=PromptActivation.Kind.choices)

    class Meta:
        model = PromptActivation
        fields: tuple[str, ...] = ()
