"""Filters of the list of rollouts."""

from __future__ import annotations

from django_filters import rest_framework as filters

from rollouts.models import Rollout


class RolloutFilter(filters.FilterSet):  # type: ignore[misc]  # the package has no types
    config_id = filters.UUIDFilter(field_name="config_id")
    status = filters.ChoiceFilter(choices=Rollout._meta.get_field("status").choices)
    mode = filters.ChoiceFilter(choices=Rollout._meta.get_field("mode").choices)

    class Meta:
        model = Rollout
        fields: tuple[str, ...] = ()
