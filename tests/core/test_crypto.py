from __future__ import annotations

import pytest
from cryptography.fernet import Fernet
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings

from core.encryption.fernet import UndecryptableSecretError, decrypt, encrypt, rotate

OLD, NEW = Fernet.generate_key().decode(), Fernet.generate_key().decode()


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_encrypt__any_text__comes_back(plain: str) -> None:
    assert decrypt(encrypt(plain)) == plain


def test_encrypt__same_text_twice__differs_and_hides_it() -> None:
    first, second = encrypt("sk-secret"), encrypt("sk-secret")
    assert first != second
    assert "sk-secret" not in first


def test_decrypt__new_key_in_front__old_rows_stay_readable(settings: Settings) -> None:
    settings.ENCRYPTION_KEYS = [OLD]
    token = encrypt("sk-secret")
    settings.ENCRYPTION_KEYS = [NEW, OLD]
    assert decrypt(token) == "sk-secret"


def test_rotate__then_old_key_removed__still_readable(settings: Settings) -> None:
    settings.ENCRYPTION_KEYS = [OLD]
    token = encrypt("sk-secret")
    settings.ENCRYPTION_KEYS = [NEW, OLD]
    rotated = rotate(token)
    settings.ENCRYPTION_KEYS = [NEW]

    assert decrypt(rotated) == "sk-secret"
    with pytest.raises(UndecryptableSecretError):
        decrypt(token)


def test_rotate__twice__readable(settings: Settings) -> None:
    settings.ENCRYPTION_KEYS = [NEW, OLD]
    assert decrypt(rotate(rotate(encrypt("x")))) == "x"


@pytest.mark.parametrize("token", ["", "nonsense", "gAAAAA==", "ü"])
def test_decrypt__damaged__says_nothing_about_it(token: str) -> None:
    for read in (decrypt, rotate):
        with pytest.raises(UndecryptableSecretError) as caught:
            read(token)
        assert token == "" or token not in caught.value.message
