from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gateway.pipeline.candidates import allowed_names, candidates_of
from gateway.snapshot.project import ProjectSnapshot
from integrations.capabilities.lookup import capabilities_of
from integrations.providers.openai.dialect import Dialect
from integrations.registry import Candidate, traits_of

# Grades of five criteria with their reasons take some hundred tokens; thoughts count as well, and take thousands.
MAX_TOKENS, MAX_TOKENS_OF_THINKERS = 1_000, 8_000
_SANDBOX = "sandbox"


@dataclass(frozen=True, slots=True)
class Form:
    """`max_tokens` is the longest answer. Without `takes_schema` the instructions describe the answer's shape."""

    max_tokens: int = MAX_TOKENS
    takes_schema: bool = True


def form_of(snapshot: ProjectSnapshot, model: str, max_tokens: int | None = None) -> Form:
    """The form for every provider that may serve the judge's model. `max_tokens` is the evaluator's."""
    candidates = list(candidates_for(snapshot, model))
    usual = MAX_TOKENS_OF_THINKERS if any(map(may_think, candidates)) else MAX_TOKENS
    return Form(max_tokens or usual, all(traits_of(candidate.provider).json_schema for candidate in candidates))


def lacks_schema(snapshot: ProjectSnapshot, model: str) -> bool:
    """Whether a catalog says that the model takes no JSON schema, at a provider that takes them for others. It is asked
    with one anyway, and may refuse."""
    return any(map(_may_refuse, candidates_for(snapshot, model)))


def _may_refuse(candidate: Candidate) -> bool:
    # Adapters of other dialects have such a model call a tool.
    dialect = traits_of(candidate.provider)
    known = capabilities_of(candidate.provider, candidate.upstream_model)
    return isinstance(dialect, Dialect) and dialect.json_schema and known is not None and known.schema is False


def candidates_for(snapshot: ProjectSnapshot, model: str) -> Iterator[Candidate]:
    allowed = allowed_names(snapshot, None, ())
    for name in snapshot.models_of(model):
        yield from candidates_of(snapshot, name, allowed)


def may_think(candidate: Candidate) -> bool:
    """Whether the model thinks before it answers; an unlisted one may."""
    known = capabilities_of(candidate.provider, candidate.upstream_model)
    is_unknown = known is None or known.reasoning is None
    return candidate.provider != _SANDBOX and (is_unknown or bool(known and known.reasoning))
