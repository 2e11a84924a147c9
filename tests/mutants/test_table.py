from __future__ import annotations

from tests.mutants.__main__ import ROOT
from tests.mutants.table import faults, place_of


def test_table__every_fault__can_be_planted_and_names_tests() -> None:
    for fault in faults():
        assert place_of(fault, ROOT) == ROOT / fault.file
        assert fault.new != fault.old
        assert fault.tests
        assert all((ROOT / path).exists() for path in fault.tests), fault.fault
