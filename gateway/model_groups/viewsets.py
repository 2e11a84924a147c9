from __future__ import annotations

from core.resources.viewsets import Operation, ResourceViewSet
from gateway.model_groups.serializers import GroupChangeSerializer, ModelGroupSerializer, NewGroupSerializer
from gateway.model_groups.services import MODEL_GROUPS


class ModelGroupViewSet(ResourceViewSet):
    lookup_url_kwarg = "group_name"
    noun = "ModelGroup"
    resource = MODEL_GROUPS
    shown = ModelGroupSerializer
    new = NewGroupSerializer
    changed = GroupChangeSerializer
    operations = {
        "list": Operation("List model groups", "The groups by name."),
        "create": Operation("Make a model group", "The name can be called as a model within a second."),
        "retrieve": Operation("One model group"),
        "update": Operation("Replace the members of a model group", errors=(404,)),
        "destroy": Operation(
            "Delete a model group", "Requests that name the group are answered with 404 from then on."
        ),
    }
