from __future__ import annotations

from uuid import UUID

import msgspec
from django.db.models import F

from integrations.model_lists.listed import ListedModel
from integrations.models import ProviderModelList


def listed_models(project_id: UUID) -> dict[str, tuple[ListedModel, ...]]:
    """Returns the models by provider, of each enabled integration whose list was read since its address or options
    changed."""
    rows = ProviderModelList.objects.filter(
        integration__project_id=project_id,
        integration__enabled=True,
        integration__base_url=F("base_url"),
        listed_at__isnull=False,
    ).values_list("integration__provider", "integration__options", "options", "listed")
    return {
        provider: msgspec.convert(listed, tuple[ListedModel, ...])
        for provider, options, read_with, listed in rows
        if options == read_with
    }
