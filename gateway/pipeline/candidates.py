from __future__ import annotations

from collections.abc import Collection, Iterable

from gateway.snapshot.project import ProjectSnapshot
from integrations.access.deployments import Deployment, rank
from integrations.providers.base import Credentials
from integrations.registry import Candidate, prefix_of, resolve


def candidates_of(snapshot: ProjectSnapshot, model: str, allowed: Collection[str]) -> list[Candidate]:
    """Returns the candidates for a model, preferred providers first.

    `allowed` are names of deployments; of providers, if the project has nothing to choose among deployments.
    """
    if not snapshot.deployments:
        return resolve(model, allowed, snapshot.disabled)
    deployments = [deployment for deployment in snapshot.deployments.values() if deployment.name in allowed]
    first, slash, rest = model.partition("/")
    named = snapshot.deployments.get(first) if slash else None
    if named is not None and named.name != named.provider:
        return _at([named], named.provider, rest) if rest and named in deployments else []
    resolved = resolve(model, {deployment.provider for deployment in deployments}, snapshot.disabled)
    providers = {candidate.provider for candidate in resolved}
    found = [one for candidate in resolved for one in _at(deployments, candidate.provider, candidate.upstream_model)]
    listing = [deployment for deployment in deployments if model in deployment.models]
    if listing and prefix_of(model) is None:
        # Providers of any model are for names that nobody lists.
        found = [one for one in found if model in snapshot.deployments[one.deployment].models]
    return found + [Candidate(one.provider, model, one.name) for one in listing if one.provider not in providers]


def allowed_names(snapshot: ProjectSnapshot, only: Collection[str] | None, ignore: Collection[str]) -> frozenset[str]:
    """Returns the deployments that a request permits; providers, if the project has no choice among deployments.

    A provider's name stands for all of its deployments.
    """
    if not snapshot.deployments:
        return frozenset(name for name in snapshot.credentials if (only is None or name in only) and name not in ignore)
    return frozenset(
        one.name
        for one in snapshot.deployments.values()
        if (only is None or one.name in only or one.provider in only)
        and one.name not in ignore
        and one.provider not in ignore
    )


def picked(candidates: list[Candidate], names: Iterable[str]) -> list[Candidate]:
    found = (one for name in names for one in candidates if name in (one.provider, one.deployment))
    return list(dict.fromkeys(found))


def of_name(snapshot: ProjectSnapshot, name: str, allowed: Collection[str]) -> list[Deployment]:
    return [one for one in snapshot.deployments.values() if name in (one.name, one.provider) and one.name in allowed]


def by_rank(snapshot: ProjectSnapshot, candidates: list[Candidate], key: str) -> list[Candidate]:
    places: dict[str, int] = {}
    for candidate in candidates:
        places.setdefault(candidate.provider, len(places))
    return sorted(candidates, key=lambda one: (places[one.provider], *rank(snapshot.deployments[one.deployment], key)))


def access_of(snapshot: ProjectSnapshot, candidate: Candidate) -> Credentials:
    deployment = snapshot.deployments.get(candidate.deployment) if candidate.deployment else None
    return deployment.credentials if deployment is not None else snapshot.credentials[candidate.provider]


def _at(deployments: Iterable[Deployment], provider: str, model: str) -> list[Candidate]:
    return [
        Candidate(provider, model, one.name) for one in deployments if one.provider == provider and one.serves(model)
    ]
