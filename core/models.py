"""Projects, their API keys, and the people who work in them."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from typing_extensions import override

from core.rights.roles import Role
from core.tenancy import ProjectManager

NAME_CHARACTERS = 100


class Project(models.Model):
    """A project, the tenant to which all other rows belong."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=NAME_CHARACTERS, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]

    @override
    def __str__(self) -> str:
        return self.name


class ApiKey(models.Model):
    """An API key of one project. The key itself is shown once and never stored."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="api_keys")
    name = models.CharField(max_length=NAME_CHARACTERS)
    # The first characters of the key: enough to recognise it in a list, too few to use it.
    prefix = models.CharField(max_length=16, editable=False)
    # The SHA-256 of the key, hexadecimal. A key has 256 random bits, so a slow hash would only add latency.
    key_hash = models.CharField(max_length=64, unique=True, editable=False)
    scopes = models.JSONField(default=list)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = ProjectManager()

    class Meta:
        ordering = ["-created_at", "-id"]
        verbose_name = "API key"

    @override
    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"


class Membership(models.Model):
    """The role of a person in a project. Superusers need no role: they have every right in all projects."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=32, choices=Role)
    # The person's inviter, as `user:<name>`, `key:<id>` or `command`.
    created_by = models.CharField(max_length=200, blank=True, default="", editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = ProjectManager()

    class Meta:
        ordering = ["project_id", "id"]
        verbose_name = "member"
        constraints = [models.UniqueConstraint(fields=["project", "user"], name="one_role_in_a_project")]

    @override
    def __str__(self) -> str:
        return f"{self.user}, {self.get_role_display()} of {self.project}"


class EncryptionCanary(models.Model):
    """The encryption canary, one row under the installation's keys: a process that cannot read it has other keys."""

    token = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)

    # The columns that `manage.py rotate_encryption_keys` encrypts again (core.rotation).
    encrypted_fields = ("token",)

    class Meta:
        default_permissions = ()

    @override
    def __str__(self) -> str:
        return "canary"


class FirstKey(models.Model):
    """The key of the first start. While it has not been shown, the next start makes another."""

    api_key = models.OneToOneField(ApiKey, on_delete=models.CASCADE)
    shown_at = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ()

    @override
    def __str__(self) -> str:
        return str(self.api_key)
