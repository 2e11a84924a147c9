"""The choice among the deployments of one provider: weighted rendezvous hashing.

Each key, a session or a request, ranks the deployments by itself. A deployment that fails or goes leaves the ranks of
the others as they are, so that only its own keys move, and they come back with it.
"""

from __future__ import annotations

from hashlib import blake2b
from math import log

from integrations.deployments import Deployment

Rank = tuple[int, bool, float]

_BITS = 53


def rank(deployment: Deployment, key: str) -> Rank:
    """Returns the deployment's place for the key, the least first: by priority, then so that a deployment comes first
    for a share of the keys that is its weight's share. One without weight comes behind all others of its priority."""
    digest = blake2b(f"{deployment.name}\n{key}".encode(errors="surrogatepass"), digest_size=8).digest()
    draw = ((int.from_bytes(digest) >> (64 - _BITS)) + 0.5) / 2**_BITS
    # An exponentially distributed time with the weight as its rate: the first of several is each one's with the
    # probability of its share (Schindelhauer and Schomaker, "Weighted Distributed Hash Tables", 2005).
    return deployment.priority, deployment.weight == 0, -log(draw) / (deployment.weight or 1)
