from __future__ import annotations

import re
from typing import Any

from django.core.exceptions import ValidationError
from django.db import models

from core.models import Project
from core.tenancy import ProjectManager
from gateway.project_settings.model_groups import Strategy
from gateway.protocol.wire import AUTO
from integrations.registry import is_known

NAME_CHARACTERS = 64
MAX_MEMBERS = 20
MAX_WEIGHT = 1000
MEMBER_CHARACTERS = 200
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z")


def validate_group_name(name: str) -> None:
    """Raises ValidationError for a name that means a provider or `auto`, or that no request could send. A group with
    the name of a vendor's model takes that model's place; `provider/model` still means the model."""
    if "/" in name:
        raise ValidationError("A name with / is a provider's model.", code="slash")
    if not _NAME.match(name):
        raise ValidationError(
            "Must begin with a letter or a digit and have only letters, digits, dots, hyphens and underscores.",
            code="characters",
        )
    if name == AUTO:
        raise ValidationError("auto stands for the preferred models.", code="reserved")
    if is_known(name):
        raise ValidationError(f"{name} is the name of a provider.", code="provider")


def validate_members(value: Any) -> None:
    if not isinstance(value, list) or not value:
        raise ValidationError("A group needs at least one model.", code="empty")
    if len(value) > MAX_MEMBERS:
        raise ValidationError(f"At most {MAX_MEMBERS} models are allowed.", code="too_many")
    models_ = [member["model"] for member in value]
    repeated = [model for model in models_ if models_.count(model) > 1]
    if repeated:
        raise ValidationError(f"{repeated[0]} occurs twice.", code="repeated")
    if AUTO in models_:
        raise ValidationError("auto cannot be in a group.", code="reserved")
    if not any(member["weight"] for member in value):
        raise ValidationError("At least one weight must be more than 0.", code="no_weight")


class ModelGroupRow(models.Model):
    """`members` is a list of `{"model", "weight"}`, in order."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="model_groups")
    name = models.CharField(max_length=NAME_CHARACTERS, validators=[validate_group_name])
    strategy = models.CharField(max_length=10, choices=[(one.value, one.value) for one in Strategy])
    members = models.JSONField(validators=[validate_members])
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    objects = ProjectManager()

    class Meta:
        ordering = ["name"]
        verbose_name = "model group"
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="one_model_group_of_a_name")]

    def __str__(self) -> str:
        return self.name
