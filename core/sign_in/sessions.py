"""Sessions by account: Django's in the database, with a column that finds all of a person
(https://docs.djangoproject.com/en/stable/topics/http/sessions/#extending-database-backed-session-engines)."""

from __future__ import annotations

from typing import Any, cast

from django.contrib.auth import SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.backends import db

from core.models import PersonSession


class SessionStore(db.SessionStore):
    @classmethod
    def get_model_class(cls) -> type[PersonSession]:
        return PersonSession

    def create_model_instance(self, data: dict[str, Any]) -> PersonSession:
        row = cast(PersonSession, super().create_model_instance(data))
        row.account_id = int(data[SESSION_KEY]) if SESSION_KEY in data else None
        return row


def end_sessions(user: User) -> None:
    PersonSession.objects.filter(account_id=user.pk).delete()
