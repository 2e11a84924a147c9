"""Removes the deduplication tokens of parts that a killed engine did not store.

A MergeTree table writes a part's token to its deduplication log first, and renames the part into place microseconds
later. A process killed in between leaves a token without its part: the retried batch would count as a duplicate, and
its rows would be lost. Replicated tables write both in one transaction. Source: `MergeTreeSink::finishDelayedChunk` and
`MergeTreeDeduplicationLog` in ClickHouse.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

logger = logging.getLogger("analytics.engine")

_LOG = re.compile(r"deduplication_log_(\d+)\.txt\Z")
# A line of a log has an operation, the name of a part, and its token.
_LINE = re.compile(r"(\d+)\t([^\t]+)\t([^\t]+)\Z")
_ADDED, _DROPPED = "1", "2"
# The name of a part is its partition, its first and last block, its level, and the version of its latest mutation:
# https://clickhouse.com/docs/engines/table-engines/mergetree-family/custom-partitioning-key
_PART = re.compile(r"[^_]+_\d+_(\d+)_\d+(_\d+)?\Z")


def forget_interrupted_inserts(directory: Path) -> None:
    """Drops every token whose part is newer than all parts of its table. No engine may have the directory open."""
    for folder in directory.glob("store/*/*/deduplication_logs"):
        logs = sorted((int(found[1]), path) for path in folder.iterdir() if (found := _LOG.match(path.name)))
        stored = max((_last_block(path.name) for path in folder.parent.iterdir()), default=0)
        lines = (line for _, path in reversed(logs) for line in reversed(path.read_text("utf-8").splitlines()))
        dropped = [f"{_DROPPED}\t{part}\t{token}\n" for part, token in _newer_than(stored, lines)]
        if dropped:
            logger.warning("engine.insert_interrupted table=%s parts=%d", folder.parent.name, len(dropped))
            with logs[-1][1].open("a", encoding="utf-8") as log:
                log.writelines(dropped)


def _newer_than(stored: int, lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    gone = set()
    for line in lines:
        if not (found := _LINE.match(line)):
            continue
        operation, part, token = found.groups()
        if operation == _DROPPED:
            gone.add(token)
        elif operation == _ADDED and _last_block(part) <= stored:
            return
        elif operation == _ADDED and token not in gone:
            yield part, token


def _last_block(part: str) -> int:
    found = _PART.match(part)
    return int(found[1]) if found else 0
