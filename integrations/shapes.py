from __future__ import annotations

from datetime import datetime
from typing import Any, NotRequired, TypedDict


class IntegrationTest(TypedDict):
    tested_at: datetime
    ok: bool | None
    reason: str


class ServedModel(TypedDict):
    model: str
    deployment: str


class OwnPrice(TypedDict):
    """A price of one deployment in US dollars per 1,000,000 tokens."""

    model: str
    input_cost_per_1m: str
    output_cost_per_1m: str
    cache_read_cost_per_1m: str | None
    cache_write_cost_per_1m: str | None


class IntegrationEntry(TypedDict):
    """An integration in answers, with its secrets masked."""

    name: str
    provider: str
    api_key: str
    enabled: bool
    own_account: bool
    base_url: str
    usable: bool
    last_test: IntegrationTest | None
    created_at: datetime
    updated_at: datetime
    default_parameters: dict[str, Any]
    forced_parameters: dict[str, Any]
    extra_headers: dict[str, str]
    forward_headers: list[str]
    weight: int
    priority: int
    rpm: int | None
    tpm: int | None
    models: list[ServedModel]
    prices: list[OwnPrice]
    api_version: NotRequired[str]
    deployment: NotRequired[str]
    region: NotRequired[str]
    project: NotRequired[str]
    location: NotRequired[str]
    responses_models: NotRequired[str]
    credentials: NotRequired[str]
    access_key_id: NotRequired[str]
    secret_access_key: NotRequired[str]
    session_token: NotRequired[str]
