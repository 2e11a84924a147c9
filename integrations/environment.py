from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from core.errors import ValidationError
from core.models import Project
from integrations.models import ProviderIntegration
from integrations.providers.openai.compatible import DIALECTS
from integrations.services import IntegrationChange, add_integration

logger = logging.getLogger("integrations.environment")


@dataclass(frozen=True, slots=True)
class Variables:
    """Of several names for one value, the first that is set counts. `secret_file` is the variable with the path of the
    secret's file. `version_path` is the path that the vendor's SDK adds to an address without one. `options` and
    `secret_extra` map a field to its variables."""

    provider: str
    secret: tuple[str, ...] = ()
    base_url: str = ""
    base_url_required: bool = False
    version_path: str = ""
    secret_file: str = ""
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    secret_extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


# GITHUB_TOKEN and WANDB_API_KEY are in no row, since they are often set for other purposes than models.
VARIABLES = (
    Variables("openai", ("OPENAI_API_KEY",), "OPENAI_BASE_URL"),
    Variables(
        "azure_openai",
        ("AZURE_OPENAI_API_KEY",),
        "AZURE_OPENAI_ENDPOINT",
        base_url_required=True,
        options={"api_version": ("OPENAI_API_VERSION",)},
    ),
    Variables("anthropic", ("ANTHROPIC_API_KEY",), "ANTHROPIC_BASE_URL"),
    Variables("azure_anthropic", ("ANTHROPIC_FOUNDRY_API_KEY",), "ANTHROPIC_FOUNDRY_BASE_URL", base_url_required=True),
    Variables("google", ("GEMINI_API_KEY", "GOOGLE_API_KEY"), "GOOGLE_GEMINI_BASE_URL", version_path="/v1beta"),
    Variables(
        "google_vertex",
        secret_file="GOOGLE_APPLICATION_CREDENTIALS",  # noqa: S106  # the name of a variable
        base_url="GOOGLE_VERTEX_BASE_URL",
        version_path="/v1",
        options={
            "project": ("GOOGLE_CLOUD_PROJECT",),
            "location": ("GOOGLE_CLOUD_LOCATION", "GOOGLE_CLOUD_REGION"),
        },
    ),
    Variables(
        "bedrock",
        ("AWS_BEARER_TOKEN_BEDROCK",),
        "AWS_ENDPOINT_URL_BEDROCK_RUNTIME",
        options={"region": ("AWS_REGION", "AWS_DEFAULT_REGION")},
        secret_extra={
            "access_key_id": ("AWS_ACCESS_KEY_ID",),
            "secret_access_key": ("AWS_SECRET_ACCESS_KEY",),
            "session_token": ("AWS_SESSION_TOKEN",),
        },
    ),
    Variables("cohere", ("CO_API_KEY", "COHERE_API_KEY"), "CO_API_URL"),
    Variables("mistral", ("MISTRAL_API_KEY",), "MISTRAL_BASE_URL"),
    *(
        Variables(
            row.provider,
            row.key_variables,
            f"{row.provider.upper()}_BASE_URL",
            # A server that works without a key is there only if its address is named.
            base_url_required=not row.base_url or row.optional_secret,
        )
        for row in DIALECTS
        if row.key_variables
    ),
)

# Ollama, vLLM and other compatible servers work without a key, so that their address alone makes an integration.
_KEYLESS = frozenset(row.provider for row in DIALECTS if row.key_variables and row.optional_secret)


def import_from_environment(project_id: UUID, environ: Mapping[str, str] | None = None) -> list[str]:
    source = os.environ if environ is None else environ
    existing = set(ProviderIntegration.objects.for_project(project_id).values_list("provider", flat=True))
    added = []
    for variables in VARIABLES:
        if variables.provider in existing:
            continue
        change = _change(variables, source)
        if change is not None and _added(project_id, variables.provider, change):
            added.append(variables.provider)
    return added


def _added(project_id: UUID, provider: str, change: IntegrationChange) -> bool:
    """Returns False for an incomplete integration: the variables may be meant for another program, and must not keep
    the service from starting."""
    ids = {"project_id": str(project_id), "provider": provider}
    try:
        add_integration(project_id=project_id, provider=provider, change=change, trusted=True)
    except ValidationError as error:
        logger.warning("integration.not_imported", extra={**ids, "fields": sorted(error.details or ())})
        return False
    logger.info("integration.imported", extra=ids)
    return True


def import_into_first_project(*, project: Project, first: bool, **_: object) -> None:
    if first:
        import_from_environment(project.pk)


def _change(variables: Variables, environ: Mapping[str, str]) -> IntegrationChange | None:
    secret = _first(environ, variables.secret) or _file(environ, variables.secret_file)
    extra = _fields(environ, variables.secret_extra)
    base_url = _value(environ, variables.base_url).rstrip("/")
    if base_url and "/" not in base_url.partition("://")[2]:
        base_url += variables.version_path
    if variables.base_url_required and not base_url:
        return None
    if not secret and not extra and variables.provider not in _KEYLESS:
        return None
    return IntegrationChange(
        secret=secret or None,
        base_url=base_url or None,
        options=_fields(environ, variables.options) or None,
        secret_extra=extra or None,
    )


def _fields(environ: Mapping[str, str], names: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    return {name: value for name, variables in names.items() if (value := _first(environ, variables))}


def _first(environ: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next(filter(None, (_value(environ, name) for name in names)), "")


def _file(environ: Mapping[str, str], name: str) -> str:
    path = environ.get(name, "").strip() if name else ""
    if not path:
        return ""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        logger.warning("integration.file_unreadable", extra={"variable": name})
        return ""


def _value(environ: Mapping[str, str], name: str) -> str:
    return (environ.get(name, "").strip() or _file(environ, f"{name}_FILE").strip()) if name else ""
