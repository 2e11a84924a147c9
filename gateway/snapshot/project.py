from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from core.caller_limits import CallerLimits
from core.keys.services import KeyRecord
from gateway.project_settings.limits import NO_LIMITS, ProjectLimits
from gateway.project_settings.model_groups import ModelGroup
from gateway.project_settings.settings import ProjectSettings
from gateway.protocol.wire import AUTO
from gateway.snapshot.prompts import ManagedPrompt
from integrations.access.deployments import Deployment
from integrations.model_lists.listed import ListedModel
from integrations.pricing.cost import Price
from integrations.pricing.lookup import find_price
from integrations.providers.base import Credentials

PriceTable = Mapping[tuple[str, str], Price]

_MAX_PRICES = 5000


@dataclass(frozen=True, slots=True)
class ProjectSnapshot:
    """A project's configuration as requests read it: loaded once, immutable.

    `credentials` maps the provider of each enabled integration to its access, of several to that of the first.
    `deployments` maps all of them by name, in order of priority; it is empty if there is nothing to choose among them
    (`integrations.access.deployments.in_use`). `unreadable` are the providers of enabled integrations whose credential
    cannot be read, `disabled` those of integrations that are switched off. `keys` maps the hash of each key that is not
    revoked, `prompts` the name of each prompt config, `groups` that of each model group.
    """

    project_id: UUID
    id_text: str
    keys: Mapping[str, KeyRecord]
    credentials: Mapping[str, Credentials]
    prices: PriceTable
    settings: ProjectSettings
    serial: int
    prompts: Mapping[str, ManagedPrompt] = field(default_factory=dict)
    deployments: Mapping[str, Deployment] = field(default_factory=dict)
    groups: Mapping[str, ModelGroup] = field(default_factory=dict)
    unreadable: frozenset[str] = frozenset()
    disabled: frozenset[str] = frozenset()
    limits: ProjectLimits = NO_LIMITS
    # The limits of every end user without limits by name; None where there are none.
    every_user: CallerLimits | None = None
    # The limits of end users by name, None for a user without any.
    user_limits: Mapping[str, CallerLimits | None] = field(default_factory=dict)
    # The limits of teams by id; a team without any is left out.
    team_limits: Mapping[int, CallerLimits] = field(default_factory=dict)
    # The models by provider, of each provider whose own list is known.
    listed_models: Mapping[str, tuple[ListedModel, ...]] = field(default_factory=dict)
    # The models that `GET /models` lists, by id; found when the first client asks.
    callable_models: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    # The JSON of the list by the form that clients read.
    model_lists: dict[str, bytes] = field(default_factory=dict, repr=False, compare=False)
    # The attempts that `select` has computed for models that are requested without routing preferences.
    plain_attempts: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    # The integrations that keep a file of the project, by the provider's id of it, found when a request names it.
    kept_files: dict[str, frozenset[int | None]] = field(default_factory=dict, repr=False, compare=False)
    # The plans of plain requests by operation, key and model (`gateway.pipeline.plan`).
    plans: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    # Whether any prompt has a rollout that runs or is paused.
    has_rollouts: bool = field(init=False, default=False, repr=False, compare=False)
    _priced: dict[tuple[str, str], Price | None] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        found = any(prompt.rollout is not None for prompt in self.prompts.values())
        object.__setattr__(self, "has_rollouts", found)

    def models_of(self, name: str, session_id: str = "") -> Sequence[str]:
        if name == AUTO:
            preferred = self.settings.preferred_models
            if self.groups.keys().isdisjoint(preferred):
                return [model for model in preferred if model != AUTO]
            found = (model for one in preferred if one != AUTO for model in self.models_of(one, session_id))
            return list(dict.fromkeys(found))
        group = self.groups.get(name)
        return (name,) if group is None else group.models(session_id)

    @property
    def is_ambient(self) -> bool:
        of_deployments = (deployment.credentials for deployment in self.deployments.values())
        return any(credentials.is_ambient for credentials in (*self.credentials.values(), *of_deployments))

    @property
    def limits_users(self) -> bool:
        return self.every_user is not None or bool(self.user_limits)

    def price_of(self, provider: str, model: str) -> Price | None:
        """Returns None if the price is unknown. Cached per model, because names outside the list are costly to find."""
        name = (provider, model)
        if name not in self._priced:
            # Clients choose the names, so their number is bounded.
            if len(self._priced) >= _MAX_PRICES:
                self._priced.clear()
            self._priced[name] = find_price(self.prices, provider, model)
        return self._priced[name]
