from __future__ import annotations

from gateway.configuration.sections.resource import ResourceSection
from gateway.model_groups.serializers import NewGroupSerializer
from gateway.model_groups.services import MODEL_GROUPS


class ModelGroupsSection(ResourceSection):
    name = "model_groups"
    without_default = ("strategy", "members")
    resource = MODEL_GROUPS
    body = NewGroupSerializer
