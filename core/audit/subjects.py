"""The one table of what the audit log records: models and the fields that may be shown.

Unlisted fields are in no entry, so a new secret stays out by default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db.models import Model

# The values in an entry for a secret that is set, and for one that was set to another value.
SET, SET_ANEW = "set", "set anew"
# The kinds of changes of many rows at once, which have one entry together.
ENCRYPTION, PRICE_LIST = "encryption", "price list"
# A person who signed in, by which method; who set up or lost a second factor.
SIGN_IN, SECOND_FACTOR = "sign-in", "second factor"


@dataclass(frozen=True, slots=True)
class Subject:
    """A recorded model.

    Entries show `fields` with values before and after, `secrets` only as set or empty. With `describes_itself`, rows
    list further values in `audited_values()`. `project` is the lookup from a row to its project's id.
    """

    kind: str
    fields: tuple[str, ...]
    secrets: tuple[str, ...] = ()
    label: str = ""
    project: str = "project_id"
    # A project without a row has the defaults, so that the first row is a change of these.
    has_defaults: bool = False
    # Fields that hold an object, each of whose values counts as a field `<field>.<name>`.
    nested: tuple[str, ...] = ()
    describes_itself: bool = False


_INTEGRATION = (
    "name", "provider", "base_url", "options", "enabled", "own_account", "default_parameters", "forced_parameters",
    "forward_headers", "weight", "priority", "rpm", "tpm", "served_models", "own_prices",
)  # fmt: skip

_LIMITS = (
    "monthly_budget_usd", "total_budget_usd", "rate_limit_rpm", "rate_limit_tpm", "max_concurrent_requests",
)  # fmt: skip

# The keys are the models' `app.model`.
SUBJECTS: Mapping[str, Subject] = {
    "auth.user": Subject(
        "account",
        ("username", "email", "is_staff", "is_superuser", "is_active"),
        secrets=("password",),
        label="username",
        project="",
    ),
    "core.project": Subject("project", ("name",), label="name", project="pk"),
    "core.apikey": Subject(
        "API key",
        (
            "name",
            "prefix",
            "scopes",
            "expires_at",
            "revoked_at",
            "previous_expires_at",
            *_LIMITS,
            "allowed_models",
            "allowed_providers",
            "team",
        ),
        nested=("metadata",),
        label="name",
    ),
    "core.team": Subject("team", ("name", *_LIMITS), label="name"),
    "core.teammember": Subject("team member", ("is_lead",), project="team.project_id"),
    "core.invitation": Subject("invitation", ("email", "role", "expires_at"), label="email"),
    "core.membership": Subject("member", ("role", "group_role", "given_role"), label="user"),
    "integrations.providerintegration": Subject(
        "provider key",
        _INTEGRATION,
        secrets=("encrypted_secret", "encrypted_extra", "encrypted_headers"),
        label="name",
    ),
    "integrations.modelprice": Subject(
        "price",
        (
            "provider",
            "model",
            "input_cost_per_1m",
            "output_cost_per_1m",
            "cache_read_cost_per_1m",
            "cache_write_cost_per_1m",
            "terms",
            "source",
        ),
    ),
    "gateway.gatewaysettings": Subject(
        "settings",
        (),
        label="project",
        has_defaults=True,
        describes_itself=True,
    ),
    # The name of an end user may be a person's, and is not kept.
    "gateway.enduserlimit": Subject(
        "end user's limits",
        ("monthly_budget_usd", "rate_limit_rpm", "rate_limit_tpm", "max_concurrent_requests"),
        label="pk",
    ),
    "gateway.modelgrouprow": Subject("model group", ("name", "strategy", "members"), label="name"),
    "gateway.alertsecret": Subject("webhook secret", (), secrets=("token",), label="project"),
    "gateway.alertchannel": Subject(
        "alert channel",
        ("name", "kind", "receives_project_alerts"),
        secrets=("encrypted_url", "emails"),
        label="name",
    ),
    "gateway.figurealert": Subject(
        "alert",
        ("name", "condition", "threshold", "window_minutes", "min_requests", "repeat_minutes", "silenced_until"),
        describes_itself=True,
        label="name",
    ),
    "prompts.promptconfig": Subject("prompt", ("name", "description"), label="name"),
    "prompts.promptversion": Subject(
        "prompt version", ("number", "model", "commit_message"), project="config.project_id"
    ),
    "prompts.promptactivation": Subject(
        "prompt activation", ("from_version_id", "to_version_id", "kind", "reason"), project="config.project_id"
    ),
    "prompts.promptlabel": Subject(
        "prompt label", ("name", "version_id", "is_protected"), label="name", project="config.project_id"
    ),
    "prompts.promptlabelmove": Subject(
        "prompt label move", ("label", "from_version_id", "to_version_id", "reason"), project="config.project_id"
    ),
    "rollouts.rollout": Subject(
        "rollout",
        ("name", "mode", "allocation_type", "policy", "quality", "gate", "gate_dataset_id", "status", "current_stage"),
        label="name",
    ),
    "rollouts.rollouttransition": Subject(
        "rollout transition",
        ("action", "from_status", "to_status", "to_stage", "reason"),
        project="rollout.project_id",
        describes_itself=True,
    ),
    "analytics.evaluator": Subject("evaluator", ("name", "kind", "state"), label="name"),
    "analytics.evaluatorversion": Subject(
        "evaluator version", ("number", "definition", "good_from"), project="evaluator.project_id"
    ),
    "analytics.onlineevaluation": Subject(
        "online evaluation",
        ("evaluator_id", "version_id", "filter", "rate", "monthly_budget_usd", "matched", "label_share", "state"),
    ),
    "gateway.experiment": Subject("experiment", ("name", "state", "item_limit", "judge"), label="name"),
    "analytics.tracedestination": Subject(
        "trace destination",
        ("name", "endpoint", "enabled", "sampling_ratio", "include_content"),
        secrets=("encrypted_headers",),
        label="name",
    ),
    "analytics.reviewqueue": Subject(
        "review queue",
        ("name", "state", "sample_size", "score_name", "kind", "evaluator_id", "due_labels"),
        label="name",
    ),
    # Neither the text nor what it is about is kept: both go with the request or session.
    "analytics.comment": Subject("comment", ("edited_by", "edited_at"), label="kind"),
    "analytics.assignment": Subject("assignment", ("assignee", "state"), label="kind"),
    # The id of what was deleted is not kept: a session's name may be a person's.
    "analytics.deletion": Subject("deletion", ("kind", "subject_hash"), label="kind"),
}


def kinds() -> list[str]:
    return sorted({ENCRYPTION, PRICE_LIST, SIGN_IN, SECOND_FACTOR, *(subject.kind for subject in SUBJECTS.values())})


def subject_of(model: type[Model]) -> Subject | None:
    return SUBJECTS.get(model._meta.label_lower)


def values_of(subject: Subject, row: Model) -> dict[str, Any]:
    """Returns JSON values, without fields that the row lacks."""
    values = {name: _plain(getattr(row, name)) for name in subject.fields if hasattr(row, name)}
    if subject.describes_itself:
        described: Any = row
        values |= described.audited_values()
    for field in subject.nested:
        values |= {f"{field}.{name}": _plain(value) for name, value in (getattr(row, field) or {}).items()}
    return values


def secrets_of(subject: Subject, row: Model) -> dict[str, Any]:
    """Returns the stored forms of secrets for comparison only; they never belong in an entry."""
    return {name: getattr(row, name) for name in subject.secrets}


def project_of(subject: Subject, row: Model) -> UUID | None:
    found: Any = row if subject.project else None
    for step in filter(None, subject.project.split(".")):
        found = getattr(found, step, None)
    project_id: UUID | None = found
    return project_id


def label_of(subject: Subject, row: Model) -> str:
    return str(getattr(row, subject.label)) if subject.label else str(row)


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Decimal):
        return f"{value.normalize():f}"
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return str(value)
