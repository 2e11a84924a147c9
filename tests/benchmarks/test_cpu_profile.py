from __future__ import annotations

import pytest

from benchmarks.cpu_profile import shares

_PRINTED = """\
# Samples: 1K of event 'cpu-clock'
#
# Overhead  Shared Object
# ........  ....................
#
    51.25%  [kernel.kallsyms]
    38.00%  libpython3.11.so.1.0
     4.50%  loop.cpython-311-x86_64-linux-gnu.so
     2.00%  libc.so.6
     1.50%  _core.cpython-311-x86_64-linux-gnu.so
     1.25%  parser.cpython-311-x86_64-linux-gnu.so
     1.00%  python3.11
     0.50%  [vdso]
"""


def test_shares__of_a_report__are_summed_by_part() -> None:
    assert shares(_PRINTED) == pytest.approx(
        {
            "kernel": 0.5125,
            "CPython": 0.39,
            "uvloop": 0.045,
            "msgspec": 0.015,
            "httptools": 0.0125,
            "other libraries": 0.025,
        }
    )
