"""TensorZero's `tensorzero.toml` with the templates and schemas beside it
(https://www.tensorzero.com/docs/gateway/configuration-reference)."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path as File
from typing import Any

from gateway.configuration.origins.deployments import Deployments, Served, prices_of
from gateway.configuration.origins.litellm_models import default_secrets
from gateway.configuration.origins.prompts import checked_text, label_of, variables_of
from gateway.configuration.origins.remaining import Imported, Remaining
from gateway.configuration.problems import InvalidConfigurationError, Path, Problem
from integrations.registry import is_known, traits_of

_TYPES = {
    "azure": "azure_openai",
    "aws_bedrock": "bedrock",
    "gcp_vertex_gemini": "google_vertex",
    "gcp_vertex_anthropic": "google_vertex",
    "google_ai_studio_gemini": "google",
    "sglang": "openai_compatible",
    "tgi": "openai_compatible",
    "nvidia_nim": "nvidia",
}
_TEXTS = {
    "api_base": "base_url",
    "endpoint": "base_url",
    "region": "region",
    "project_id": "project",
    "location": "location",
}
_MODEL_NAMES = ("model_name", "deployment_id", "model_id")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_COSTS = {"input_cost_per_million": "input_cost_per_1m", "output_cost_per_million": "output_cost_per_1m"}
_SECONDS = "time-outs are settings of the service (docs/operations.md)"
_EXPERIMENT = "start a rollout between the versions (docs/rollouts.md)"
REASONS: Mapping[str, str] = {
    "gateway.*": "the service is set up by environment variables (docs/operations.md)",
    "clickhouse.*": "the stores are settings of the service (docs/operations.md)",
    "postgres.*": "the stores are settings of the service (docs/operations.md)",
    "object_storage.*": "the stores are settings of the service (docs/operations.md)",
    "models.*timeout*": _SECONDS,
    "functions.*timeout*": _SECONDS,
    "functions.*retries*": "attempts are a setting of the project, retry_max_attempts",
    "functions.*weight": _EXPERIMENT,
    "functions.*experimentation*": _EXPERIMENT,
    "functions.*schema*": "the values of placeholders have types, in the version's variables",
    "functions.*evaluators*": "answers are scored by judges and reviews (docs/reviews.md)",
    "metrics.*": "scores need no declaration (docs/analytics.md)",
    "evaluations.*": "versions and models are compared in experiments (docs/experiments.md)",
    "rate_limiting.*": "limits are of projects, teams, keys and end users (docs/limits.md)",
    "provider_types.*": "each integration has its own credential",
}


def read(values: Mapping[str, Any], folder: File, environ: Mapping[str, str] | None = None) -> Imported:
    found = os.environ if environ is None else environ
    remaining = Remaining(values, REASONS)
    deployments = Deployments()
    for section in ("models", "embedding_models"):
        for name in remaining.names(section):
            _read_model(remaining, (section, name), name, deployments, found)
    functions = {name: _Function(remaining, name, folder) for name in remaining.names("functions")}
    prompts = {name: prompt for name, one in functions.items() if (prompt := one.prompt()) is not None}
    for kind, path in (item for one in functions.values() for item in one.providers.items()):
        if traits_of(kind).required_options:
            remaining.note(path, f"set {kind} up, which needs more than a key (docs/integrations.md)")
        elif not deployments.has(kind):
            deployments.add(kind, default_secrets(kind, found), None)
    project = {
        "integrations": deployments.integrations(),
        "model_groups": deployments.groups(),
        "prompts": prompts,
    }
    return Imported({name: section for name, section in project.items() if section}, remaining.told())


def _read_model(
    remaining: Remaining, path: Path, name: str, deployments: Deployments, environ: Mapping[str, str]
) -> None:
    routing = [str(one) for one in remaining.take_list(*path, "routing")]
    providers = remaining.names(*path, "providers")
    added: list[str] = []
    for provider in [*routing, *(one for one in providers if one not in routing)]:
        if provider not in providers:
            raise InvalidConfigurationError([Problem((*path, "routing"), f"There is no provider {provider}.")])
        at = (*path, "providers", provider)
        if provider not in routing:
            remaining.note(at, "is not in the routing, and is left out")
            remaining.take(*at)
            continue
        kind = _read_provider(remaining, at, name, deployments, environ, priority=len(added))
        if kind:
            added.append(kind)
    if len(dict.fromkeys(added)) > 1:
        group, _ = deployments.group(name, [])
        deployments.in_order(group)
        if group != name:
            remaining.note(path, f"clients have to send {group} as model for the order of its providers")


def _read_provider(
    remaining: Remaining,
    path: Path,
    name: str,
    deployments: Deployments,
    environ: Mapping[str, str],
    *,
    priority: int,
) -> str:
    theirs = remaining.take_text(*path, "type")
    kind = _TYPES.get(theirs, theirs)
    if not is_known(kind):
        remaining.note(path, f"no provider here is called {theirs}; it is left out")
        remaining.take(*path)
        return ""
    own = next((text for field in _MODEL_NAMES if (text := remaining.take_text(*path, field))), name)
    access = _access(remaining, path, kind, environ)
    if kind == "openai" and "base_url" in access:
        kind = "openai_compatible"
    if priority:
        access["priority"] = priority
    costs = {ours: remaining.take_number(*path, "cost", field) for field, ours in _COSTS.items()}
    prices = prices_of({field: None if cost is None else cost / 1_000_000 for field, cost in costs.items()})
    deployments.add(kind, access, Served(name, own, prices))
    return kind


def _access(remaining: Remaining, path: Path, kind: str, environ: Mapping[str, str]) -> dict[str, Any]:
    traits = traits_of(kind)
    known = {"base_url", *traits.options, *traits.required_options}
    found: dict[str, Any] = {}
    for theirs, ours in _TEXTS.items():
        given = remaining.take_text(*path, theirs)
        if given and ours not in known:
            remaining.note((*path, theirs), f"{kind} takes no {ours}; it is left out")
        elif given:
            found[ours] = _filled(given, (*path, theirs), environ)
    location = remaining.take_text(*path, "api_key_location") or remaining.take_text(*path, "credential_location")
    way, separator, place = location.partition("::")
    if way in ("env", "path_from_env", "file", "path") and separator:
        found["api_key"] = _credential(way, place, environ)
    elif way == "none":
        return found
    elif location:
        remaining.note(path, f"credentials that come with a request ({way}) are kept by the gateway here: set api_key")
    if "api_key" not in found and not traits.optional_secret:
        found |= default_secrets(kind, environ)
    return found


def _credential(way: str, place: str, environ: Mapping[str, str]) -> dict[str, str]:
    if way == "env":
        return {"env": place}
    return {"file": environ.get(place, f"${place}") if way == "path_from_env" else place}


def _filled(given: str, path: Path, environ: Mapping[str, str]) -> str:
    def value(variable: str) -> str:
        if variable not in environ:
            raise InvalidConfigurationError([Problem(path, f"The variable {variable} is not set.")])
        return environ[variable]

    if given.startswith("env::"):
        return value(given.removeprefix("env::"))
    return _VARIABLE.sub(lambda found: value(found[1]), given)


class _Function:
    def __init__(self, remaining: Remaining, name: str, folder: File) -> None:
        self._remaining, self._name, self._folder = remaining, name, folder
        self._path: Path = ("functions", name)
        # The providers that are named before a model, as in `openai::gpt-4o`, with where they are.
        self.providers: dict[str, Path] = {}

    def prompt(self) -> dict[str, Any] | None:
        self._remaining.take(*self._path, "type")
        description = self._remaining.take_text(*self._path, "description")
        schema = self._schema()
        versions: list[dict[str, Any]] = []
        labels: dict[str, int] = {}
        for variant in self._remaining.names(*self._path, "variants"):
            path = (*self._path, "variants", variant)
            version = self._version(path, variant, schema)
            if version is None:
                continue
            versions.append({"number": len(versions) + 1, **version})
            if label := label_of(self._remaining, path, variant):
                labels[label] = len(versions)
        if not versions:
            return None
        if len(versions) > 1:
            self._remaining.note(self._path, f"its variants are versions; the first is active: {_EXPERIMENT}")
        found: dict[str, Any] = {"versions": versions, "active_version": 1, "labels": labels}
        return {"description": description, **found} if description else found

    def _version(self, path: Path, variant: str, schema: dict[str, Any] | None) -> dict[str, Any] | None:
        kind = self._remaining.take_text(*path, "type") or "chat_completion"
        texts = [(role, text) for role in ("system", "user", "assistant") if (text := self._template(path, role))]
        model = self._model((*path, "model"))
        if kind != "chat_completion":
            self._remaining.note(path, f"a variant of type {kind} has no counterpart here")
            return None
        if not texts:
            what = f" with {model} as model" if model else ""
            self._remaining.note(path, f"{variant} has no template: clients send their messages themselves{what}")
            return None
        messages = [{"role": role, "content": text} for role, text in texts]
        only = texts[0][1] if len(texts) == 1 and texts[0][0] == "system" else ""
        found: dict[str, Any] = {"system_prompt": only} if only else {"messages": messages}
        for name in ("temperature", "max_tokens"):
            number = self._remaining.take_number(*path, name)
            if number is not None:
                found[name] = number
        if model:
            found["model"] = model
        if schema is not None:
            found["response_format"] = schema
        self._remaining.take(*path, "json_mode")
        variables = variables_of([text for _, text in texts], {})
        return {**found, "commit_message": variant, **({"variables": variables} if variables else {})}

    def _model(self, path: Path) -> str:
        given = self._remaining.take_text(*path)
        theirs, separator, own = given.partition("::")
        if not separator:
            return given
        kind = _TYPES.get(theirs, theirs)
        if not is_known(kind):
            self._remaining.note(path, f"no provider here is called {theirs}; it is left out")
            return ""
        self.providers.setdefault(kind, path)
        return f"{kind}/{own}"

    def _template(self, path: Path, role: str) -> str:
        given = self._remaining.take_text(*path, "templates", role, "path")
        field: Path = (*path, "templates", role, "path")
        older = self._remaining.take(*path, f"{role}_template")
        if not given and older:
            given = str(older.get("path", "")) if isinstance(older, Mapping) else str(older)
            field = (*path, f"{role}_template")
        instructions = self._remaining.take_text(*path, "system_instructions") if role == "system" else ""
        if not given:
            given, field = instructions, (*path, "system_instructions")
        if not given:
            return ""
        return checked_text(self._remaining, (*path, "templates", role), self._content(given, field).strip())

    def _schema(self) -> dict[str, Any] | None:
        given = self._remaining.take(*self._path, "output_schema")
        if not given:
            return None
        name = str(given.get("path", "")) if isinstance(given, Mapping) else str(given)
        path = (*self._path, "output_schema")
        try:
            schema = json.loads(self._content(name, path))
        except (ValueError, RecursionError):
            raise InvalidConfigurationError([Problem(path, f"{name} is no JSON.")]) from None
        name = re.sub(r"[^A-Za-z0-9_-]", "_", self._name)[:64]
        return {"type": "json_schema", "json_schema": {"name": name, "schema": schema}}

    def _content(self, name: str, path: Path) -> str:
        try:
            file = (self._folder / name).resolve()
            # A configuration of somebody else must not bring along what this host keeps for itself.
            if not file.is_relative_to(self._folder.resolve()):
                problem = f"The file {name} is not in the folder of the configuration."
                raise InvalidConfigurationError([Problem(path, problem)])
            return file.read_text(encoding="utf-8")
        except (OSError, ValueError, RuntimeError):
            raise InvalidConfigurationError([Problem(path, f"The file {name} cannot be read.")]) from None
