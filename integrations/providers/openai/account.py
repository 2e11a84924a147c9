from __future__ import annotations

from typing import Any

import msgspec

from integrations.providers.errors import UnsupportedParameterError
from integrations.providers.openai.dialect import Dialect

RawFields = dict[str, msgspec.Raw]

_AS_IF_ABSENT = frozenset({b"null", b"false", b"0", b"0.0", b"{}", b"[]"})
_encode = msgspec.json.Encoder().encode


class Account:
    __slots__ = ("dialect", "raw", "warnings")

    def __init__(self, raw: RawFields, dialect: Dialect) -> None:
        self.raw = raw
        self.dialect = dialect
        self.warnings: list[str] = []

    def drop(self, name: str, reason: str = "") -> None:
        if self._has_effect(name):
            self.warnings.append(f"{name}: dropped, {reason or f'{self.dialect.provider} has no counterpart'}")
        self.raw.pop(name, None)

    def ignore(self, name: str, *, is_foreign: bool) -> None:
        if is_foreign:
            self.drop(name)
        elif self._has_effect(name):
            self.warnings.append(f"{name}: ignored by {self.dialect.provider}")

    def _has_effect(self, name: str) -> bool:
        value = self.raw.get(name)
        return value is not None and bytes(value) not in _AS_IF_ABSENT

    def value(self, name: str) -> Any:
        raw = self.raw.get(name)
        return None if raw is None else msgspec.json.decode(raw)

    def set(self, name: str, value: Any) -> None:
        self.raw[name] = msgspec.Raw(_encode(value))

    def refuse(self, name: str, problem: str) -> UnsupportedParameterError:
        return UnsupportedParameterError(name, problem, provider=self.dialect.provider)
