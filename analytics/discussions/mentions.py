"""Finds the people whom a comment names: `@ann` is a member of the project; other words stay text."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db.models import Q, QuerySet

# A comment that names more people informs nobody.
MAX_MENTIONS = 50
# The characters of Django's usernames; an address such as `mail@example.org` names nobody.
_TOKEN = re.compile(r"(?<![\w.@+-])@([\w.@+-]+)")
# These may end a name, but mostly they end the sentence that it stands in.
_ENDS = ".+-@"


def people_of(project_id: UUID) -> QuerySet[Any, str]:
    """Returns the usernames of all who can read the project in the console, members and superusers, by name."""
    may_read = Q(memberships__project_id=project_id) | Q(is_superuser=True)
    people = get_user_model().objects.filter(may_read, is_active=True, is_staff=True)
    return people.order_by("username").values_list("username", flat=True).distinct()


def mentions_in(project_id: UUID, text: str) -> list[str]:
    named = [spelling for found in _TOKEN.finditer(text) for spelling in _spellings(found[1])]
    if not named:
        return []
    known = set(people_of(project_id).filter(username__in=named))
    return [name for name in dict.fromkeys(named) if name in known][:MAX_MENTIONS]


def pieces_of(text: str, names: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yields each piece with the username that it names, or ""."""
    done = 0
    for found in _TOKEN.finditer(text):
        name = next((one for one in _spellings(found[1]) if one in names), "")
        if name:
            end = found.start(1) + len(name)
            yield text[done : found.start()], ""
            yield text[found.start() : end], name
            done = end
    yield text[done:], ""


def _spellings(token: str) -> Iterator[str]:
    """Yields the possible names, the longest first: `ann.` is `ann` at the end of a sentence."""
    yield token
    while token and token[-1] in _ENDS:
        token = token[:-1]
        if token:
            yield token
