from __future__ import annotations

import uuid
from typing import Any

from django.conf import settings
from django.contrib.sessions.base_session import AbstractBaseSession
from django.db import models
from django_otp.models import Device, ThrottlingMixin

from core.caller_limits import MONEY_COLUMN_DIGITS, MONEY_COLUMN_PLACES
from core.fleet.tables import Host as Host  # Django looks for models in this module
from core.fleet.tables import Lease as Lease
from core.fleet.tables import ScheduledRun as ScheduledRun
from core.roles import Role
from core.tenancy import ProjectManager

NAME_CHARACTERS = 100


class Project(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=NAME_CHARACTERS, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


def _budget(**options: Any) -> Any:
    return models.DecimalField(
        null=True, blank=True, max_digits=MONEY_COLUMN_DIGITS, decimal_places=MONEY_COLUMN_PLACES, **options
    )


class Limited(models.Model):
    """The columns of limits (docs/limits.md); null is unlimited."""

    monthly_budget_usd = _budget(help_text="Per calendar month, UTC.")
    total_budget_usd = _budget(help_text="In all.")
    rate_limit_rpm = models.PositiveIntegerField(null=True, blank=True)
    rate_limit_tpm = models.PositiveIntegerField(null=True, blank=True)
    max_concurrent_requests = models.PositiveIntegerField(null=True, blank=True)
    # The time of the last change of a limit: spend before it may not have been counted.
    limits_changed_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        abstract = True


class Team(Limited):
    """A level between a project and its API keys: its limits hold for all its keys together. Teams do not nest."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="teams")
    name = models.CharField(max_length=NAME_CHARACTERS)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = ProjectManager()

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="one_team_of_a_name")]

    def __str__(self) -> str:
        return self.name


class ApiKey(Limited):
    """The key itself is shown once and never stored."""

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
    # The hash of the secret before the last rotation, which opens the project until `previous_expires_at`.
    previous_key_hash = models.CharField(  # noqa: DJ001 - null, because the column is unique
        max_length=64, null=True, unique=True, editable=False
    )
    previous_expires_at = models.DateTimeField(null=True, editable=False)
    # What a key has spent stays with the team that it belonged to at that time.
    team = models.ForeignKey(Team, on_delete=models.SET_NULL, null=True, blank=True, related_name="api_keys")
    allowed_models = models.JSONField(default=list, db_default=[], blank=True)
    allowed_providers = models.JSONField(default=list, db_default=[], blank=True)
    metadata = models.JSONField(default=dict, db_default={}, blank=True)

    objects = ProjectManager()

    class Meta:
        ordering = ["-created_at", "-id"]
        verbose_name = "API key"

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"


class Membership(models.Model):
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    # The role that counts: the higher one of that given by hand and that of the person's groups at a sign-in provider.
    role = models.CharField(max_length=32, choices=Role)
    # The role of the groups, empty without one; then `role` was given by hand. Beside it the one given by hand, if any.
    group_role = models.CharField(max_length=32, choices=Role, blank=True, default="", db_default="", editable=False)
    given_role = models.CharField(max_length=32, choices=Role, blank=True, default="", db_default="", editable=False)
    # The person's inviter, as `user:<name>`, `key:<id>`, `provider:<name>` or `command`.
    created_by = models.CharField(max_length=200, blank=True, default="", editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = ProjectManager()

    class Meta:
        ordering = ["project_id", "id"]
        verbose_name = "member"
        constraints = [models.UniqueConstraint(fields=["project", "user"], name="one_role_in_a_project")]

    def __str__(self) -> str:
        return f"{self.user}, {self.get_role_display()} of {self.project}"


class Invitation(models.Model):
    """A role in a project for a person without an account here: whoever opens the link takes it, and so does the first
    sign-in at a provider that has verified this address."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="invitations")
    email = models.EmailField()
    role = models.CharField(max_length=32, choices=Role)
    # The SHA-256 of the link's secret, hexadecimal.
    token_hash = models.CharField(max_length=64, unique=True, editable=False)
    # When the link ends; the role waits for a sign-in until the invitation is taken back.
    expires_at = models.DateTimeField(editable=False)
    created_by = models.CharField(max_length=200, blank=True, default="", editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = ProjectManager()

    class Meta:
        ordering = ["email"]
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["project", "email"], name="one_invitation_of_an_address")]

    def __str__(self) -> str:
        return self.email


class TeamMember(models.Model):
    """A project member in one of its teams. A lead sees the team's keys and their spend; being in a team gives no other
    right. Leaving the project leaves its teams."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="members")
    membership = models.ForeignKey(Membership, on_delete=models.CASCADE, related_name="teams")
    is_lead = models.BooleanField(default=False)

    class Meta:
        ordering = ["id"]
        constraints = [models.UniqueConstraint(fields=["team", "membership"], name="once_in_a_team")]

    def __str__(self) -> str:
        return f"{self.membership.user}, {'lead' if self.is_lead else 'member'} of {self.team}"


class SignInIdentity(models.Model):
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="sign_in_identities")
    # The provider's name in OIDC_PROVIDERS, and the claim `sub`: at most 255 characters by OpenID Connect.
    provider = models.CharField(max_length=32)
    subject = models.CharField(max_length=255)
    # True while the account is a superuser's because of the groups at this provider.
    made_superuser = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    last_sign_in_at = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ()
        verbose_name_plural = "sign-in identities"
        constraints = [models.UniqueConstraint(fields=["provider", "subject"], name="one_account_for_an_identity")]

    def __str__(self) -> str:
        return f"{self.user} at {self.provider}"


class PersonSession(AbstractBaseSession):
    account_id = models.BigIntegerField(null=True, db_index=True)

    class Meta(AbstractBaseSession.Meta):
        default_permissions = ()


class SecondFactor(ThrottlingMixin, Device):  # type: ignore[misc]  # django-otp has no types
    """The app that makes a person's codes for password logins (TOTP, RFC 6238).

    Each wrong code doubles the pause until the next is checked.
    """

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="second_factor")
    name = None  # of django-otp: people have one factor
    encrypted_key = models.TextField()
    # False until the person has typed a first code; then it guards the account.
    confirmed = models.BooleanField(default=False)
    # The number of the 30 seconds whose code was used last: no code counts twice.
    last_step = models.BigIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)

    # The columns that `manage.py rotate_encryption_keys` encrypts again (core.encryption.rotation).
    encrypted_fields = ("encrypted_key",)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return str(self.user)

    def get_throttle_factor(self) -> int:
        """Returns the pause in seconds after the first wrong code."""
        return 1


class RecoveryCode(models.Model):
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="recovery_codes")
    # The SHA-256 of the code, hexadecimal. A code has 80 random bits, so a slow hash would only add latency.
    code_hash = models.CharField(max_length=64)

    class Meta:
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["user", "code_hash"], name="a_recovery_code_once")]

    def __str__(self) -> str:
        return f"a recovery code of {self.user}"


class EncryptionCanary(models.Model):
    token = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)

    # The columns that `manage.py rotate_encryption_keys` encrypts again (core.encryption.rotation).
    encrypted_fields = ("token",)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return "canary"


class FirstKey(models.Model):
    """The key of the first start. Until it has been shown, the next start makes another."""

    api_key = models.OneToOneField(ApiKey, on_delete=models.CASCADE)
    shown_at = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return str(self.api_key)


class AuditEntry(models.Model):
    """One change made through the API, a page or a command. Entries are only added, and are deleted with their project.
    `changes` has [before, after] by field, without secrets."""

    class Via(models.TextChoices):
        API = "api", "API"
        PAGE = "page", "page"
        COMMAND = "command", "command"

    project = models.ForeignKey(Project, on_delete=models.CASCADE, null=True, related_name="audit_entries")
    created_at = models.DateTimeField(auto_now_add=True)
    # The actor is a user, a key or a command.
    actor_kind = models.CharField(max_length=16)
    actor_name = models.CharField(max_length=200)
    actor_id = models.CharField(max_length=200, blank=True, default="")
    via = models.CharField(max_length=10, choices=Via)
    # The id of the operation, the name of the page's URL, or the name of the command.
    operation = models.CharField(max_length=100)
    object_kind = models.CharField(max_length=100)
    object_id = models.CharField(max_length=200)
    object_label = models.CharField(max_length=300)
    action = models.CharField(max_length=10)
    summary = models.CharField(max_length=500)
    changes = models.JSONField(default=dict)
    request_id = models.CharField(max_length=64, blank=True, default="")

    objects = ProjectManager()

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "audit entries"
        indexes = [
            models.Index(fields=["project", "-id"], name="audit_of_project"),
            models.Index(fields=["project", "created_at"], name="audit_of_project_by_time"),
        ]

    def __str__(self) -> str:
        return self.summary
