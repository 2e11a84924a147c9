"""The families of models that a judge and those it judges have in common: judges tend to prefer the style of theirs."""

from __future__ import annotations

from collections.abc import Iterable

from integrations.registry import prefix_of


def family_of(model: str) -> str:
    """Returns who made the model, as the registry of models names it; empty for one that it does not know. Names may
    have a provider before them (`azure_openai/gpt-4o`), or a region and a vendor (`us.anthropic.claude-…`)."""
    name = model.rpartition("/")[2]
    parts = name.split(".")
    found = [prefix_of(".".join(parts[start:])) for start in range(len(parts))]
    # What stands before a name says who serves it.
    return next((prefix.owned_by for prefix in reversed(found) if prefix is not None), "")


def shared_families(judge_models: Iterable[str], models: Iterable[str]) -> list[str]:
    """Returns the families of which both a judge and a judged model are, by name."""
    return sorted({family_of(one) for one in judge_models} & {family_of(one) for one in models} - {""})
