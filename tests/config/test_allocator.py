from __future__ import annotations

import subprocess
import sys

from tests.live.service import ROOT
from tests.waiting import TIMEOUT_SECONDS

_PROGRAM = """
import asyncio
import psutil
from config.supervisor import allocator

resident = lambda: psutil.Process().memory_info().rss

async def main():
    before = resident()
    allocator.Trimming(asyncio.get_running_loop())
    blocks = [b"x" * 100_000 for _ in range(2000)]
    assert resident() > before + 150_000_000
    # The last block stays at the end of the heap, and so the free ones before it.
    del blocks[:-1]
    while resident() > before + 30_000_000:
        await asyncio.sleep(0.1)

allocator.return_freed_memory()
asyncio.run(main())
"""


def test_memory__freed_below_a_used_block__returns_to_the_system() -> None:
    subprocess.run([sys.executable, "-c", _PROGRAM], cwd=ROOT, check=True, timeout=TIMEOUT_SECONDS)
