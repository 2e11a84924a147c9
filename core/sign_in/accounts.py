"""The account that a person at a provider signs in to: known, linked by a verified address, or new."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils import timezone

from core.models import SignInIdentity
from core.sign_in.groups import apply, granted_by
from core.sign_in.openid import SignInError
from core.sign_in.providers import Provider

_NOT_IN_NAMES = re.compile(r"[^\w.@+-]+")
_NAME_CHARACTERS, _SUBJECT_CHARACTERS = 150, 255


def account_of(provider: Provider, claims: Mapping[str, Any]) -> tuple[User, list[str]]:
    """Returns the account with the rights of the person's groups, and sentences about groups that bring none.

    Raises SignInError for an account that is switched off, or an address that several accounts have.
    """
    try:
        return _signed_in_account(provider, claims)
    except IntegrityError as error:
        # Another first sign-in took the name, or was this person's own, at the same moment.
        raise SignInError("Somebody was signing in at this very moment. Begin again.", "at_once") from error


def _signed_in_account(provider: Provider, claims: Mapping[str, Any]) -> tuple[User, list[str]]:
    with transaction.atomic():
        identity = _identity_of(provider, claims)
        # Sign-ins of one person that come at once follow each other.
        user = identity.user = User.objects.select_for_update().get(pk=identity.user_id)
        if not user.is_active:
            raise SignInError("This account is switched off. Tell an administrator.", "account_inactive")
        if not user.is_staff:
            user.is_staff = True
            user.save(update_fields=["is_staff"])
        granted = granted_by(provider, claims)
        apply(granted, identity)
        identity.last_sign_in_at = timezone.now()
        identity.save(update_fields=["last_sign_in_at"])
    return user, granted.problems


def _identity_of(provider: Provider, claims: Mapping[str, Any]) -> SignInIdentity:
    subject = _text(claims, "sub", _SUBJECT_CHARACTERS + 1)
    if not 0 < len(subject) <= _SUBJECT_CHARACTERS:
        raise SignInError(f"{provider.label} does not say who you are. Tell an administrator.", "subject")
    known = SignInIdentity.objects.filter(provider=provider.name, subject=subject).first()
    if known is not None:
        return known
    user = _linked(provider, claims) or _new_account(claims)
    return SignInIdentity.objects.create(provider=provider.name, subject=subject, user=user)


def _linked(provider: Provider, claims: Mapping[str, Any]) -> User | None:
    """Returns the account with the person's address, if the provider has verified it and the operator allows it."""
    address = _text(claims, "email", 254)
    if not provider.links_by_email or claims.get("email_verified") is not True:
        return None
    found = list(User.objects.filter(email__iexact=address)[:2]) if address else []
    if len(found) > 1:
        raise SignInError(
            "Several accounts here have your e-mail address. An administrator has to leave it with one of them.",
            "address_of_several",
        )
    return found[0] if found else None


def _new_account(claims: Mapping[str, Any]) -> User:
    user = User(
        username=_free_name(claims),
        email=_text(claims, "email", 254),
        first_name=_text(claims, "given_name", 150),
        last_name=_text(claims, "family_name", 150),
        is_staff=True,
    )
    user.set_unusable_password()
    user.save()
    return user


def _free_name(claims: Mapping[str, Any]) -> str:
    """Returns a name that no account has: the person's at the provider, with a number where it is taken."""
    texts = (_text(claims, name, _NAME_CHARACTERS) for name in ("preferred_username", "email", "name", "sub"))
    wanted = next(filter(None, (_NOT_IN_NAMES.sub("-", text).strip("-") for text in texts)), "person")
    name, number = wanted, 1
    while User.objects.filter(username__iexact=name).exists():
        number += 1
        name = f"{wanted[: _NAME_CHARACTERS - 8]}-{number}"
    return name


def _text(claims: Mapping[str, Any], name: str, characters: int) -> str:
    value = claims.get(name)
    return value.replace("\x00", "")[:characters] if isinstance(value, str) else ""
