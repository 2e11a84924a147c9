"""The places that the fields are sent to: every provider, its kinds of models, as the first choice and as a
fallback."""

from __future__ import annotations

from collections.abc import Iterator

from tests.integrations.bedrock_exchanges import CLAUDE, NOVA
from tests.integrations.fields.dialects import OWN_DIALECTS
from tests.integrations.fields.outcomes import Finding, Outcome, Place, findings
from tests.integrations.fields.silence import BARRED, matches, reason_for
from tests.integrations.fields.sources import Case, cases_of, sources

# Several models of one provider are listed where they accept different fields; elsewhere the default model represents
# all.
MODELS = {
    "openai": ("gpt-4o", "gpt-5"),
    "azure_openai": ("gpt-4o",),
    "anthropic": ("claude-sonnet-4-5", "claude-opus-4-8"),
    "azure_anthropic": ("claude-sonnet-4-5",),
    "google": ("gemini-2.5-flash", "gemini-3-pro-preview"),
    "google_vertex": ("gemini-2.5-flash", "claude-sonnet-4-5"),
    "bedrock": (CLAUDE, NOVA, "openai.gpt-oss-120b-1:0"),
    "mistral": ("mistral-large-latest", "magistral-medium-latest"),
    "cohere": ("command-a-03-2025", "command-a-reasoning-08-2025"),
}
# Only one row of OpenAI's dialect gets the fields of the other vendors' types, since all rows have the same adapter.
_ANY_SERVER = "openai_compatible"


def places_of(provider: str) -> Iterator[Place]:
    models = MODELS.get(provider, ("",))
    for model in models:
        yield Place(provider, model)
    yield Place(provider, models[0], crosses_vendor=True)


def sources_for(provider: str) -> tuple[str, ...]:
    if provider in OWN_DIALECTS:
        # Requests of the other surfaces are translated before any vendor is chosen, and Anthropic gets its own as they
        # came.
        own = [name for name in sources() if name not in ("messages", "responses")]
        if provider == "google":
            own += ["messages", "responses"]
        # Anthropic's beta types include its other types, so a vendor that has neither is tested with the latter alone.
        return tuple(name for name in own if name != "anthropic_beta" or name in OWN_DIALECTS[provider])
    return sources() if provider == _ANY_SERVER else ("openai",)


def faults(place: Place) -> Iterator[tuple[Case, Finding]]:
    """Yields the fields that vanished without a warning, or in a way that a client cannot act on."""
    for source in sources_for(place.provider):
        is_own_dialect = source == "openai" or source in OWN_DIALECTS.get(place.provider, ())
        for case, finding in findings(cases_of(source), place):
            if is_fault(case, finding, place, is_own_dialect=is_own_dialect):
                yield case, finding


def is_fault(case: Case, finding: Finding, place: Place, *, is_own_dialect: bool) -> bool:
    match finding.outcome:
        case Outcome.SILENT:
            return not reason_for(case, place)
        case Outcome.BARRED:
            return is_own_dialect and not matches(case.path, BARRED)
        case outcome:
            return outcome is Outcome.BROKEN


def outermost(paths: list[str]) -> list[str]:
    """Returns each path once for all its values, without the paths inside another one."""
    names = sorted({path.partition("=")[0] for path in paths}, key=len)
    found: list[str] = []
    for name in names:
        if not any(name.startswith((f"{outer}.", f"{outer}[")) for outer in found):
            found.append(name)
    return sorted(found)
