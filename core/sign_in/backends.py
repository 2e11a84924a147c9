from __future__ import annotations

from typing import Any

from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User
from django.http import HttpRequest

from core.sign_in import second_factor

OPEN_ID_BACKEND = "core.sign_in.backends.OpenIdBackend"
# Of the account that the backend below returns: by what the person proved the second factor.
METHOD_ATTRIBUTE = "second_factor_method"
SECOND_FACTOR_BACKEND = "core.sign_in.backends.SecondFactorBackend"


class OpenIdBackend(ModelBackend):
    def authenticate(self, request: HttpRequest | None, *args: Any, **credentials: Any) -> None:
        return None


class PasswordBackend(ModelBackend):
    def get_user(self, user_id: int) -> User | None:
        user = super().get_user(user_id)
        return None if not isinstance(user, User) or second_factor.is_required(user) else user


class SecondFactorBackend(ModelBackend):
    """For sessions begun by a password and a code. The password was checked before; `token` is the code.

    django-axes counts wrong codes like wrong passwords.
    """

    def authenticate(
        self, request: HttpRequest | None, username: str | None = None, password: str | None = None, **credentials: Any
    ) -> User | None:
        token = credentials.get("token")
        user = User.objects.filter(username=username).first() if token is not None else None
        if user is None or not self.user_can_authenticate(user):
            return None
        method = second_factor.verify(user, str(token))
        if method is None:
            return None
        setattr(user, METHOD_ATTRIBUTE, method)
        return user
