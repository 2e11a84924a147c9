from __future__ import annotations

from functools import partial
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models.signals import post_delete, post_save

from analytics.datasets.signals import items_gone
from analytics.deletion.signals import subject_erased, subject_sought
from analytics.telemetry.prompt_calls import prompt_calls_stored
from core.models import ApiKey, Project, Team
from gateway.alerts.rollouts import raise_of_watch
from gateway.alerts.secrets import ensure_secret
from gateway.end_users import erasure as end_users
from gateway.experiments import erasure
from gateway.models import EndUserLimit, GatewaySettings, ModelGroupRow
from gateway.snapshot.announcements import PRICES, announce
from integrations.models import ModelPrice, ProviderIntegration
from integrations.signals import model_list_changed, prices_changed
from prompts.models import PromptConfig
from rollouts.models import Rollout
from rollouts.signals import watch_warned


def _project_changed(instance: Project, **_: Any) -> None:
    transaction.on_commit(partial(announce, str(instance.pk)))


def _owned_by_project_changed(
    instance: (
        ApiKey | Team | ProviderIntegration | GatewaySettings | EndUserLimit | ModelGroupRow | PromptConfig | Rollout
    ),
    **_: Any,
) -> None:
    transaction.on_commit(partial(announce, str(instance.project_id)))


def _prices_changed(**_: Any) -> None:
    transaction.on_commit(partial(announce, PRICES))


def _model_list_changed(project_id: UUID, **_: Any) -> None:
    transaction.on_commit(partial(announce, str(project_id)))


def _price_changed(instance: ModelPrice, **_: Any) -> None:
    transaction.on_commit(partial(announce, PRICES if instance.project_id is None else str(instance.project_id)))


def _prompt_calls_stored(**stored: Any) -> None:
    # Every process connects signals; only web workers, which take spans, load the gateway's runtime.
    from gateway.prompt_fetch.outcomes import record_calls

    record_calls(**stored)


def _settings_saved(instance: GatewaySettings, raw: bool = False, **_: Any) -> None:
    # The receiver of webhooks needs the secret before the first alert.
    if not raw and instance.settings.alert_webhook_url:
        ensure_secret(instance.project_id)


def connect() -> None:
    post_save.connect(_settings_saved, sender=GatewaySettings, dispatch_uid="gateway.alert_secret")
    prompt_calls_stored.connect(_prompt_calls_stored, dispatch_uid="gateway.prompt_outcomes")
    items_gone.connect(erasure.items_are_gone, dispatch_uid="gateway.experiment_items")
    subject_erased.connect(erasure.subject_is_erased, dispatch_uid="gateway.experiments_erased")
    subject_sought.connect(erasure.subject_is_kept, dispatch_uid="gateway.experiments_sought")
    subject_erased.connect(end_users.user_is_erased, dispatch_uid="gateway.end_users_erased")
    subject_sought.connect(end_users.user_is_kept, dispatch_uid="gateway.end_users_sought")
    watch_warned.connect(raise_of_watch, dispatch_uid="gateway.rollout_watch")
    prices_changed.connect(_prices_changed, dispatch_uid="gateway.prices")
    model_list_changed.connect(_model_list_changed, dispatch_uid="gateway.model_list")
    for signal in (post_save, post_delete):
        signal.connect(_project_changed, sender=Project, dispatch_uid="gateway.project")
        signal.connect(_owned_by_project_changed, sender=ApiKey, dispatch_uid="gateway.key")
        signal.connect(_owned_by_project_changed, sender=Team, dispatch_uid="gateway.team")
        signal.connect(_owned_by_project_changed, sender=ProviderIntegration, dispatch_uid="gateway.integration")
        signal.connect(_owned_by_project_changed, sender=GatewaySettings, dispatch_uid="gateway.settings")
        signal.connect(_owned_by_project_changed, sender=EndUserLimit, dispatch_uid="gateway.end_user_limit")
        signal.connect(_owned_by_project_changed, sender=ModelGroupRow, dispatch_uid="gateway.model_group")
        # Versions and stages need no signal: every change of one saves its config or its rollout too.
        signal.connect(_owned_by_project_changed, sender=PromptConfig, dispatch_uid="gateway.prompt_config")
        signal.connect(_owned_by_project_changed, sender=Rollout, dispatch_uid="gateway.rollout")
        signal.connect(_price_changed, sender=ModelPrice, dispatch_uid="gateway.price")
