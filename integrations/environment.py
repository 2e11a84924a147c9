"""Integrations from the environment variables that the vendors' own SDKs read."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from core.models import Project
from integrations.models import ProviderIntegration
from integrations.services import IntegrationChange, add_integration

logger = logging.getLogger("integrations.environment")


@dataclass(frozen=True, slots=True)
class Variables:
    """The variables of one provider."""

    provider: str
    secret: tuple[str, ...] = ()  # the first that is set counts
    base_url: str = ""
    api_version: str = ""
    base_url_required: bool = False


VARIABLES = (
    Variables("openai", ("OPENAI_API_KEY",), "OPENAI_BASE_URL"),
    Variables(
        "azure_openai", ("AZURE_OPENAI_API_KEY",), "AZURE_OPENAI_ENDPOINT", "OPENAI_API_VERSION", base_url_required=True
    ),
    Variables("groq", ("GROQ_API_KEY",), "GROQ_BASE_URL"),
    Variables("deepseek", ("DEEPSEEK_API_KEY",), "DEEPSEEK_BASE_URL"),
    Variables("xai", ("XAI_API_KEY",), "XAI_BASE_URL"),
    Variables("openrouter", ("OPENROUTER_API_KEY",), "OPENROUTER_BASE_URL"),
    Variables("together", ("TOGETHER_API_KEY",), "TOGETHER_BASE_URL"),
    Variables("fireworks", ("FIREWORKS_API_KEY",), "FIREWORKS_BASE_URL"),
    Variables("perplexity", ("PERPLEXITY_API_KEY", "PPLX_API_KEY"), "PERPLEXITY_BASE_URL"),
    Variables("cerebras", ("CEREBRAS_API_KEY",), "CEREBRAS_BASE_URL"),
    Variables("mistral", ("MISTRAL_API_KEY",), "MISTRAL_BASE_URL"),
    Variables("huggingface", ("HF_TOKEN", "HUGGINGFACE_API_KEY"), "HUGGINGFACE_BASE_URL"),
    Variables("zai", ("ZAI_API_KEY",), "ZAI_BASE_URL"),
    Variables("snowflake", ("SNOWFLAKE_TOKEN",), "SNOWFLAKE_BASE_URL", base_url_required=True),
    Variables("ollama", ("OLLAMA_API_KEY",), "OLLAMA_BASE_URL", base_url_required=True),
    Variables("vllm", ("VLLM_API_KEY",), "VLLM_BASE_URL", base_url_required=True),
    Variables(
        "openai_compatible", ("OPENAI_COMPATIBLE_API_KEY",), "OPENAI_COMPATIBLE_BASE_URL", base_url_required=True
    ),
)

# These work without a key: their address alone asks for an integration.
_KEYLESS = frozenset({"ollama", "vllm", "openai_compatible"})


def import_from_environment(project_id: UUID, environ: Mapping[str, str] | None = None) -> list[str]:
    """Adds what the project lacks and returns the providers added. What exists stays as it is."""
    source = os.environ if environ is None else environ
    existing = set(ProviderIntegration.objects.for_project(project_id).values_list("provider", flat=True))
    added = []
    for variables in VARIABLES:
        if variables.provider in existing:
            continue
        change = _change(variables, source)
        if change is not None:
            add_integration(project_id=project_id, provider=variables.provider, change=change, trusted=True)
            logger.info("integration.imported", extra={"project_id": str(project_id), "provider": variables.provider})
            added.append(variables.provider)
    return added


def import_into_first_project(*, project: Project, first: bool, **_: object) -> None:
    """Receiver of core's `project_created`."""
    if first:
        import_from_environment(project.pk)


def _change(variables: Variables, environ: Mapping[str, str]) -> IntegrationChange | None:
    secret = next(filter(None, (_value(environ, name) for name in variables.secret)), "")
    base_url = _value(environ, variables.base_url)
    if variables.base_url_required and not base_url:
        return None
    if not secret and variables.provider not in _KEYLESS:
        return None
    api_version = _value(environ, variables.api_version)
    return IntegrationChange(
        secret=secret or None,
        base_url=base_url or None,
        options={"api_version": api_version} if api_version else None,
    )


def _value(environ: Mapping[str, str], name: str) -> str:
    return environ.get(name, "").strip() if name else ""
