from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from core.roles import Role

# The name of a project in a mapping that stands for all of them.
EVERY_PROJECT = "*"


@dataclass(frozen=True, slots=True)
class GroupRights:
    is_superuser: bool = False
    roles: Mapping[str, Role] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Provider:
    """`name` is part of the addresses of its sign-in, `label` is what people read.

    `groups` has the rights by group. `groups_claim` names the claim with a person's groups, with dots for a claim in an
    object. With `links_by_email`, a person's first sign-in opens the account with the person's verified address.
    """

    name: str
    label: str
    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    groups_claim: str = "groups"
    groups: Mapping[str, GroupRights] = field(default_factory=dict, hash=False)
    links_by_email: bool = False
