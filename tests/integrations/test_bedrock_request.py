"""Tests requests to Converse: model ids, parameters, formats of the answer, fields in Converse's own form."""

from __future__ import annotations

from integrations.providers.bedrock.models import model_of
from tests.tables.cases import tabled


@tabled
def test_model_of__id_profile_or_arn__vendor_and_version(model: str, vendor: str, version: tuple[int, int]) -> None:
    assert (model_of(model).vendor, model_of(model).version) == (vendor, version)
