from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils import timezone

from core.models import SignInIdentity
from core.sign_in.groups import apply, granted_by
from core.sign_in.invitations import accept_by_address
from core.sign_in.openid import SignInError
from core.sign_in.providers import Provider
from core.sign_in.sessions import end_sessions

_NOT_IN_NAMES = re.compile(r"[^\w.@+-]+")
_NAME_CHARACTERS, _SUBJECT_CHARACTERS, _ADDRESS_CHARACTERS = 150, 255, 254


def account_of(provider: Provider, claims: Mapping[str, Any]) -> tuple[User, list[str]]:
    """Returns the account with the rights of the person's groups, and sentences about groups that give none.

    Raises SignInError for an account that is disabled or may no longer sign in. The account's other sessions end if its
    rights change, or when a person at the provider takes it over.
    """
    try:
        return _signed_in_account(provider, claims)
    except IntegrityError as error:
        # Another first sign-in took the name, or was this person's own, at the same moment.
        raise SignInError("Somebody was signing in at this very moment. Begin again.", "at_once") from error


def _signed_in_account(provider: Provider, claims: Mapping[str, Any]) -> tuple[User, list[str]]:
    with transaction.atomic():
        problems: list[str] = []
        identity, is_linked = _identity_of(provider, claims, problems)
        # Sign-ins of one person that come at once follow each other.
        user = identity.user = User.objects.select_for_update().get(pk=identity.user_id)
        if not user.is_active:
            raise SignInError("This account is switched off. Tell an administrator.", "account_inactive")
        if is_linked and not user.is_staff:
            user.is_staff = True
            user.save(update_fields=["is_staff"])
        if not user.is_staff:
            raise SignInError("This account may not sign in any more. Tell an administrator.", "account_not_staff")
        granted = granted_by(provider, claims)
        is_invited = accept_by_address(user, _verified_address(claims))
        if apply(granted, identity) or is_linked or is_invited:
            end_sessions(user)
        identity.last_sign_in_at = timezone.now()
        identity.save(update_fields=["last_sign_in_at"])
    return user, problems + granted.problems


def _identity_of(provider: Provider, claims: Mapping[str, Any], problems: list[str]) -> tuple[SignInIdentity, bool]:
    subject = _text(claims, "sub", _SUBJECT_CHARACTERS + 1)
    if not 0 < len(subject) <= _SUBJECT_CHARACTERS:
        raise SignInError(f"{provider.label} does not say who you are. Tell an administrator.", "subject")
    known = SignInIdentity.objects.filter(provider=provider.name, subject=subject).first()
    if known is not None:
        return known, False
    linked = _linked(provider, claims, problems)
    user = linked or _new_account(claims)
    return SignInIdentity.objects.create(provider=provider.name, subject=subject, user=user), linked is not None


def _linked(provider: Provider, claims: Mapping[str, Any], problems: list[str]) -> User | None:
    """Returns the account with the person's verified address, if the operator allows it.

    An account that a sign-in made or opened belongs to that person, whatever its address. The others were made by
    somebody who may make accounts.
    """
    address = _verified_address(claims)
    if not provider.links_by_email or not address:
        return None
    rows = User.objects.select_for_update().filter(email__iexact=address)
    # A database may take more letters for equal than those of ASCII, and the next sign-in waits for the rows.
    same = [row for row in rows if row.email.encode().lower() == address.encode().lower()]
    found = [row for row in same if not row.sign_in_identities.exists()]
    if len(found) > 1:
        problems.append(
            "Several accounts here have your e-mail address, so you have a new one. Ask an administrator for its roles."
        )
    return found[0] if len(found) == 1 else None


def _verified_address(claims: Mapping[str, Any]) -> str:
    """An unverified address may be anybody's, so it is not kept."""
    address = claims.get("email")
    is_usable = isinstance(address, str) and len(address) <= _ADDRESS_CHARACTERS and "\x00" not in address
    return str(address) if is_usable and claims.get("email_verified") is True else ""


def _new_account(claims: Mapping[str, Any]) -> User:
    user = User(
        username=_free_name(claims),
        email=_verified_address(claims),
        first_name=_text(claims, "given_name", 150),
        last_name=_text(claims, "family_name", 150),
        is_staff=True,
    )
    user.set_unusable_password()
    user.save()
    return user


def _free_name(claims: Mapping[str, Any]) -> str:
    told = {**claims, "email": _verified_address(claims)}
    texts = (_text(told, name, _NAME_CHARACTERS) for name in ("preferred_username", "email", "name", "sub"))
    wanted = next(filter(None, (_NOT_IN_NAMES.sub("-", text).strip("-") for text in texts)), "person")
    name, number = wanted, 1
    while User.objects.filter(username__iexact=name).exists():
        number += 1
        name = f"{wanted[: _NAME_CHARACTERS - 8]}-{number}"
    return name


def _text(claims: Mapping[str, Any], name: str, characters: int) -> str:
    value = claims.get(name)
    return value.replace("\x00", "")[:characters] if isinstance(value, str) else ""
