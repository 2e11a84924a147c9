"""The `model_list` of LiteLLM's configuration (https://docs.litellm.ai/docs/proxy/configs)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from gateway.configuration.origins.deployments import Deployments, Served, prices_of
from gateway.configuration.origins.remaining import Remaining
from gateway.configuration.problems import InvalidConfigurationError, Path, Problem
from gateway.configuration.secrets import Secret
from integrations.environment import VARIABLES
from integrations.providers.base import AMBIENT
from integrations.registry import is_known, prefix_of, traits_of

_REFERENCE = "os.environ/"
_IN_FILE = "in the file itself"
# Where LiteLLM's name of a provider is another one than ours.
_PROVIDERS = {
    "azure": "azure_openai",
    "azure_text": "azure_openai",
    "azure_ai": "openai_compatible",
    "text-completion-openai": "openai",
    "vertex_ai": "google_vertex",
    "vertex_ai_beta": "google_vertex",
    "gemini": "google",
    "cohere_chat": "cohere",
    "together_ai": "together",
    "fireworks_ai": "fireworks",
    "ollama_chat": "ollama",
    "hosted_vllm": "vllm",
    "nvidia_nim": "nvidia",
    "text-completion-codestral": "mistral",
    "codestral": "mistral",
    "custom_openai": "openai_compatible",
    "openai_like": "openai_compatible",
    "litellm_proxy": "openai_compatible",
    "lm_studio": "openai_compatible",
    "llamafile": "openai_compatible",
    "xinference": "openai_compatible",
    "infinity": "openai_compatible",
}
_TEXTS = {
    "api_base": "base_url",
    "base_url": "base_url",
    "api_version": "api_version",
    "aws_region_name": "region",
    "aws_bedrock_runtime_endpoint": "base_url",
    "vertex_project": "project",
    "vertex_ai_project": "project",
    "vertex_location": "location",
    "vertex_ai_location": "location",
}
_SECRETS = {
    "api_key": "api_key",
    "aws_access_key_id": "access_key_id",
    "aws_secret_access_key": "secret_access_key",
    "aws_session_token": "session_token",
}
_NUMBERS = {"rpm": "rpm", "tpm": "tpm", "weight": "weight", "order": "priority"}
# Parameters of a request, which are used where a client leaves them out.
_NUMERIC_PARAMETERS = (
    "temperature", "top_p", "max_tokens", "max_completion_tokens", "frequency_penalty", "presence_penalty", "seed",
    "top_k",
)  # fmt: skip
_PARAMETERS = (
    "stop", "user", "reasoning_effort", "thinking", "parallel_tool_calls", "store", "verbosity", "service_tier",
)  # fmt: skip
_COSTS = {
    "input_cost_per_token": "input_cost_per_1m",
    "output_cost_per_token": "output_cost_per_1m",
    "cache_read_input_token_cost": "cache_read_cost_per_1m",
    "cache_creation_input_token_cost": "cache_write_cost_per_1m",
}
# The variables that LiteLLM reads by itself, where they are others than those of the vendors' SDKs.
_DEFAULT_SECRETS = {
    "azure_openai": "AZURE_API_KEY",
    "together": "TOGETHERAI_API_KEY",
    "fireworks": "FIREWORKS_AI_API_KEY",
    "nvidia": "NVIDIA_NIM_API_KEY",
    "perplexity": "PERPLEXITYAI_API_KEY",
    "databricks": "DATABRICKS_API_KEY",
}
_DEFAULT_ADDRESSES = {"azure_openai": "AZURE_API_BASE", "databricks": "DATABRICKS_API_BASE"}
_BEDROCK_ROUTES = ("converse", "invoke", "converse_like")


class Variables:
    def __init__(self, environ: Mapping[str, str], declared: Mapping[str, str]) -> None:
        self._values = {**declared, **environ}
        self._declared = {name: value for name, value in declared.items() if name not in environ}
        self._unused = dict.fromkeys(declared)

    @property
    def found(self) -> Mapping[str, str]:
        return self._values

    @property
    def unused(self) -> list[str]:
        return list(self._unused)

    def secret(self, given: str) -> Secret | dict[str, str]:
        return self.of(given.removeprefix(_REFERENCE)) if given.startswith(_REFERENCE) else Secret(given, _IN_FILE)

    def of(self, name: str) -> Secret | dict[str, str]:
        self._unused.pop(name, None)
        return Secret(self._declared[name], _IN_FILE) if name in self._declared else {"env": name}

    def text(self, given: str, path: Path) -> str:
        if not given.startswith(_REFERENCE):
            return given
        name = given.removeprefix(_REFERENCE)
        if name not in self._values:
            raise InvalidConfigurationError([Problem(path, f"The variable {name} is not set.")])
        self._unused.pop(name, None)
        return self._values[name]


def read_models(remaining: Remaining, variables: Variables, deployments: Deployments) -> None:
    problems: list[Problem] = []
    credentials = _credentials(remaining)
    unused = dict(credentials)
    for place in range(remaining.size("model_list")):
        path: Path = ("model_list", place, "litellm_params")
        name = remaining.take_text(*path, "litellm_credential_name")
        unused.pop(name, None)
        try:
            if name and name not in credentials:
                problem = f"credential_list has no {name}."
                raise InvalidConfigurationError([Problem((*path, "litellm_credential_name"), problem)])
            remaining.fill(path, credentials.get(name, {}))
            _Entry(remaining, variables, ("model_list", place)).add_to(deployments)
        except InvalidConfigurationError as error:
            problems += error.problems
    for name in unused:
        remaining.note(("credential_list",), f"no model has the credential {name}, and it is left out")
    if problems:
        raise InvalidConfigurationError(problems)


class _Entry:
    def __init__(self, remaining: Remaining, variables: Variables, path: Path) -> None:
        self._remaining, self._variables, self._path = remaining, variables, path
        self._params = (*path, "litellm_params")

    def add_to(self, deployments: Deployments) -> None:
        name = self._remaining.take_text(*self._path, "model_name")
        model = self._remaining.take_text(*self._params, "model")
        for path, value in (((*self._path, "model_name"), name), ((*self._params, "model"), model)):
            if not value:
                raise InvalidConfigurationError([Problem(path, "Is needed.")])
        provider, own = self._provider_of(model)
        if not provider:
            self._remaining.note(self._path, f"{name} is left out: no provider here is called as {model} says")
            self._remaining.take(*self._path)
            return
        access = self._access(provider)
        prices = self._prices()
        if "*" not in name and "*" not in own:
            deployments.add(self._kind(provider, access), access, Served(name, own, prices))
            return
        if own not in ("*", "") or name != model:
            self._remaining.note((*self._path, "model_name"), f"{name}: a pattern stands for all models of {provider}")
        if prices:
            self._remaining.note(self._path, "prices are of one model, and a pattern has none here: set them by model")
        deployments.add(self._kind(provider, access), access, None)

    def _provider_of(self, model: str) -> tuple[str, str]:
        given = self._remaining.take_text(*self._params, "custom_llm_provider")
        first, slash, rest = model.partition("/")
        if given:
            return _ours(given), rest if slash and first == given else model
        if slash and (provider := _ours(first)):
            route, _, bedrock = rest.partition("/")
            return provider, bedrock if provider == "bedrock" and route in _BEDROCK_ROUTES else rest
        # `grok-vision/x` is of a provider `grok-vision`, whoever else makes models whose names begin so.
        family = None if slash else prefix_of(model)
        return (family.providers[0] if family is not None else "", model)

    def _kind(self, provider: str, access: Mapping[str, Any]) -> str:
        host = urlsplit(str(access.get("base_url", ""))).hostname or ""
        is_elsewhere = bool(host) and not host.endswith("openai.com")
        return "openai_compatible" if provider == "openai" and is_elsewhere else provider

    def _access(self, provider: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        known = _options(provider)
        for theirs, ours in _TEXTS.items():
            given = self._remaining.take_text(*self._params, theirs)
            if given and ours not in known:
                self._remaining.note((*self._params, theirs), f"{provider} takes no {ours}; it is left out")
            elif given:
                found[ours] = self._variables.text(given, (*self._params, theirs))
        for theirs, ours in _SECRETS.items():
            given = self._remaining.take_text(*self._params, theirs)
            if given:
                found[ours] = self._variables.secret(given)
        for theirs, ours in _NUMBERS.items():
            number = self._remaining.take_number(*self._params, theirs)
            if number is not None:
                found[ours] = int(number)
        if provider == "ollama" and found.get("base_url", "").count("/") < 3:
            found["base_url"] += "/v1"
        found = {**found, **self._role(provider), **self._google(), **self._additions()}
        return {**found, **self._defaults(provider, found)}

    def _defaults(self, provider: str, found: Mapping[str, Any]) -> dict[str, Any]:
        """LiteLLM takes these values from the environment if the configuration omits them."""
        defaults: dict[str, Any] = {}
        address = _DEFAULT_ADDRESSES.get(provider)
        if address and "base_url" not in found:
            defaults["base_url"] = self._variables.text(_REFERENCE + address, (*self._params, "api_base"))
        has_access = "credentials" in found or any(name in found for name in _SECRETS.values())
        if has_access or traits_of(provider).optional_secret:
            return defaults
        secrets = default_secrets(provider, self._variables.found)
        return {
            **defaults,
            **{field: self._variables.of(at["env"]) if "env" in at else at for field, at in secrets.items()},
        }

    def _role(self, provider: str) -> dict[str, str]:
        role = self._remaining.take_text(*self._params, "aws_role_name")
        if not role or provider != "bedrock":
            return {}
        words = "the hosts' own role calls Bedrock: give it what this role may, and set AMBIENT_CREDENTIALS=1"
        self._remaining.note((*self._params, "aws_role_name"), words)
        return {"credentials": AMBIENT}

    def _google(self) -> dict[str, Any]:
        given = self._remaining.take_text(*self._params, "vertex_credentials")
        if not given:
            return {}
        return {"api_key": self._variables.secret(given) if given.startswith((_REFERENCE, "{")) else {"file": given}}

    def _additions(self) -> dict[str, Any]:
        taken = {
            **{name: self._remaining.take_number(*self._params, name) for name in _NUMERIC_PARAMETERS},
            **{name: self._remaining.take(*self._params, name) for name in _PARAMETERS},
        }
        parameters = {name: value for name, value in taken.items() if value is not None}
        parameters |= self._remaining.take_object(*self._params, "extra_body")
        headers = {
            str(name): self._variables.secret(str(value))
            for field in ("headers", "extra_headers")
            for name, value in self._remaining.take_object(*self._params, field).items()
        }
        organization = self._remaining.take_text(*self._params, "organization")
        if organization:
            headers["openai-organization"] = self._variables.secret(organization)
        found: dict[str, Any] = {"default_parameters": parameters} if parameters else {}
        return {**found, **({"extra_headers": headers} if headers else {})}

    def _prices(self) -> dict[str, str]:
        costs: dict[str, float | int | None] = {}
        for theirs, ours in _COSTS.items():
            of_params = self._remaining.take_number(*self._params, theirs)
            of_info = self._remaining.take_number(*self._path, "model_info", theirs)
            costs[ours] = of_info if of_params is None else of_params
        prices = prices_of(costs)
        if not prices and any(cost is not None for cost in costs.values()):
            self._remaining.note((*self._path, "model_info"), "a price needs the cost of input and of output; left out")
        return prices


def default_secrets(provider: str, environ: Mapping[str, str]) -> dict[str, Any]:
    if provider in _DEFAULT_SECRETS:
        return {"api_key": {"env": _DEFAULT_SECRETS[provider]}}
    known = next((row for row in VARIABLES if row.provider == provider), None)
    if known is None:
        return {}
    if known.secret_extra and not any(environ.get(name) for name in known.secret):
        needed = traits_of(provider).secret_extra
        found = {
            field: next((one for one in names if environ.get(one)), names[0] if field in needed else "")
            for field, names in known.secret_extra.items()
        }
        return {field: {"env": name} for field, name in found.items() if name}
    if known.secret_file:
        return {"api_key": {"file": environ.get(known.secret_file) or f"${known.secret_file}"}}
    return {"api_key": {"env": next((name for name in known.secret if environ.get(name)), known.secret[0])}}


def _credentials(remaining: Remaining) -> dict[str, dict[str, Any]]:
    found = {}
    for place in range(remaining.size("credential_list")):
        name = remaining.take_text("credential_list", place, "credential_name")
        found[name] = remaining.take_object("credential_list", place, "credential_values")
    return found


def _ours(name: str) -> str:
    found = _PROVIDERS.get(name, name)
    return found if is_known(found) else ""


def _options(provider: str) -> set[str]:
    traits = traits_of(provider)
    return {"base_url", *traits.options, *traits.required_options}
