"""The second factor of password logins: codes of an app (TOTP, RFC 6238), and recovery codes.

django-otp computes the codes and slows down guessing. The key is encrypted, recovery codes are hashed.
"""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
from urllib.parse import quote

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django_otp.oath import TOTP

from core.audit.recording import CREATED, DELETED, Change, note
from core.audit.subjects import SECOND_FACTOR
from core.encryption.fernet import decrypt, encrypt
from core.models import RecoveryCode, SecondFactor

CODE, RECOVERY_CODE = "code", "recovery code"
RECOVERY_CODES = 10

# A key of 160 bits, as RFC 4226 recommends; a recovery code of 80.
_KEY_BYTES, _RECOVERY_BYTES = 20, 10
# Codes of the 30 seconds before and after count too, for clocks that differ.
_TOLERANCE = 1
_DIGITS = 6
_NOT_IN_CODES = re.compile(r"[^0-9a-z]")
ISSUER = "Prompt Gateway"


def is_required(user: User) -> bool:
    policy: str = settings.SECOND_FACTOR
    return policy == "all" or (policy == "superusers" and user.is_superuser)


def has_one(user: User) -> bool:
    found: bool = SecondFactor.objects.filter(user=user, confirmed=True).exists()
    return found


def begin(user: User) -> SecondFactor:
    key = base64.b32encode(secrets.token_bytes(_KEY_BYTES)).decode()
    made: SecondFactor = SecondFactor.objects.get_or_create(user=user, defaults={"encrypted_key": encrypt(key)})[0]
    return made


def key_of(factor: SecondFactor) -> str:
    return decrypt(factor.encrypted_key)


def address_of(factor: SecondFactor) -> str:
    label = quote(f"{ISSUER}:{factor.user.get_username()}")
    return f"otpauth://totp/{label}?secret={key_of(factor)}&issuer={quote(ISSUER)}"


def confirm(user: User, code: str) -> list[str] | None:
    """Confirms the new factor by a first code. Returns recovery codes, or None for a wrong code."""
    with transaction.atomic():
        factor = SecondFactor.objects.select_for_update().filter(user=user, confirmed=False).first()
        if factor is None or not _matches(factor, _plain(code)):
            return None
        factor.confirmed = True
        factor.save()
        note(Change(SECOND_FACTOR, str(user.pk), user.get_username(), None, CREATED))
        return _new_recovery_codes(user)


def verify(user: User, code: str) -> str | None:
    """Returns CODE or RECOVERY_CODE; None for a wrong code, or one too soon after a wrong one. Each code counts
    once.
    """
    plain = _plain(code)
    with transaction.atomic():
        factor = SecondFactor.objects.select_for_update().filter(user=user, confirmed=True).first()
        if factor is None or not factor.verify_is_allowed()[0]:
            return None
        if _matches(factor, plain):
            return CODE
        if RecoveryCode.objects.filter(user=user, code_hash=_hash(plain)).delete()[0]:
            factor.throttle_reset()
            return RECOVERY_CODE
        factor.throttle_increment()
        return None


def replace_recovery_codes(user: User) -> list[str]:
    with transaction.atomic():
        return _new_recovery_codes(user)


def remove(user: User) -> bool:
    with transaction.atomic():
        RecoveryCode.objects.filter(user=user).delete()
        _, counts = SecondFactor.objects.filter(user=user).delete()
        if not counts:
            return False
        note(Change(SECOND_FACTOR, str(user.pk), user.get_username(), None, DELETED))
        return True


def _matches(factor: SecondFactor, plain: str) -> bool:
    if not factor.verify_is_allowed()[0]:
        return False
    totp = TOTP(base64.b32decode(key_of(factor)), digits=_DIGITS)
    is_right = len(plain) == _DIGITS and plain.isdecimal() and totp.verify(int(plain), _TOLERANCE, factor.last_step + 1)
    if is_right:
        factor.last_step = totp.t()
        factor.throttle_reset()
    elif not factor.confirmed:
        factor.throttle_increment()
    return is_right


def _new_recovery_codes(user: User) -> list[str]:
    codes = [base64.b32encode(secrets.token_bytes(_RECOVERY_BYTES)).decode().lower() for _ in range(RECOVERY_CODES)]
    RecoveryCode.objects.filter(user=user).delete()
    RecoveryCode.objects.bulk_create(RecoveryCode(user=user, code_hash=_hash(code)) for code in codes)
    return ["-".join(code[place : place + 4] for place in range(0, len(code), 4)) for code in codes]


def _plain(code: str) -> str:
    return _NOT_IN_CODES.sub("", code.lower())


def _hash(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()
