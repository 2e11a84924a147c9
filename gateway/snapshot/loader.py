"""Reads a project's configuration from the SQL database.

Called in threads that look after their connections, never on the event loop.
"""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from core.keys.services import find_key, project_keys, team_limits
from gateway.guardrails.checks import prepare_checks
from gateway.project_settings.limits import limits_of, limits_of_every_user
from gateway.project_settings.settings import ProjectSettings
from gateway.selectors import current_settings, end_user_limits, model_groups
from gateway.snapshot.project import PriceTable, ProjectSnapshot
from gateway.snapshot.prompts import managed_prompts
from integrations.access.deployments import first_of_each_kind, in_use
from integrations.model_lists.selectors import listed_models
from integrations.pricing.selectors import price_mark
from integrations.selectors import disabled_providers, price_overrides, price_table, read_deployments
from integrations.transport.ambient import resolved
from prompts.selectors import PromptVersionRecord, version_by_number


def load_project(project_id: UUID, prices: PriceTable, serial: int) -> ProjectSnapshot:
    """An unknown project has no keys. Raises django.db.Error if the database is down."""
    row = current_settings(project_id)
    settings, set_at_us = row.settings, row.set_at_us if row.pk else 0
    prepare_checks(settings.guardrails)
    teams = team_limits(project_id)
    return replace(
        load_models(project_id, prices, settings),
        keys={key.key_hash: key for key in project_keys(project_id, teams)},
        limits=limits_of(settings, set_at_us),
        every_user=limits_of_every_user(settings, set_at_us),
        serial=serial,
        prompts=managed_prompts(project_id),
        user_limits=end_user_limits(project_id),
        team_limits=teams,
    )


def load_models(project_id: UUID, prices: PriceTable, settings: ProjectSettings) -> ProjectSnapshot:
    """Returns only what decides which models the project can call and what they cost: no keys, prompts or limits."""
    overrides = price_overrides(project_id)
    found, unreadable = read_deployments(project_id)
    deployments = in_use(found)
    return ProjectSnapshot(
        project_id=project_id,
        id_text=str(project_id),
        keys={},
        credentials=first_of_each_kind(deployments or found),
        deployments={deployment.name: deployment for deployment in deployments},
        unreadable=unreadable,
        disabled=disabled_providers(project_id),
        listed_models=listed_models(project_id),
        prices={**prices, **overrides} if overrides else prices,
        settings=settings,
        serial=0,
        groups=model_groups(project_id),
    )


def with_current_keys(snapshot: ProjectSnapshot) -> ProjectSnapshot:
    credentials = {kind: resolved(one) for kind, one in snapshot.credentials.items()}
    deployments = {
        name: replace(one, credentials=resolved(one.credentials)) for name, one in snapshot.deployments.items()
    }
    if (credentials, deployments) == (snapshot.credentials, snapshot.deployments):
        return snapshot
    # What was worked out with the former keys is left behind.
    return replace(snapshot, credentials=credentials, deployments=deployments, plain_attempts={}, plans={})


def load_prices() -> PriceTable:
    return price_table()


def prices_mark() -> tuple[object, ...]:
    return price_mark()


def project_of_key(key_hash: str) -> UUID | None:
    record = find_key(key_hash)
    return None if record is None else record.project_id


def prompt_version(config_id: UUID, number: int) -> PromptVersionRecord | None:
    return version_by_number(config_id, number)
