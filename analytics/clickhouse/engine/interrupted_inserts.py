"""Takes back the tokens of parts that a killed engine did not store.

A MergeTree table writes the token of a part to its deduplication log first, and renames the part into place some
microseconds later. A process that is killed between the two leaves a token without its part, so that the table would
take the batch for stored when it is sent again, and its rows would be missing. Replicated tables, which write both in
one transaction, do not have this gap.
(`MergeTreeSink::finishDelayedChunk` and `MergeTreeDeduplicationLog` in the sources of ClickHouse.)
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

logger = logging.getLogger("analytics.engine")

_LOG = re.compile(r"deduplication_log_(\d+)\.txt\Z")
# The name of a part is its partition, its first and last block, its level, and the version of its latest mutation:
# https://clickhouse.com/docs/engines/table-engines/mergetree-family/custom-partitioning-key
_PART = re.compile(r"[^_]+_(\d+)_(\d+)_\d+(_\d+)?\Z")
_ADDED, _DROPPED = "1", "2"


def forget_interrupted_inserts(directory: Path) -> None:
    """Drops, in the deduplication logs below the engine's directory, every token whose part is newer than all parts
    that its table has. No engine may have the directory open."""
    for folder in directory.glob("store/*/*/deduplication_logs"):
        logs = sorted((int(found[1]), path) for path in folder.iterdir() if (found := _LOG.match(path.name)))
        if not logs:
            continue
        latest = logs[-1][1]
        written = "".join(path.read_text(encoding="utf-8") for _, path in logs)
        stored = max(_last_blocks(path.name for path in folder.parent.iterdir()), default=0)
        dropped = [
            f"{_DROPPED}\t{part}\t{token}\n"
            for part, token in _tokens(written)
            if any(block > stored for block in _last_blocks([part]))
        ]
        if dropped:
            logger.warning("engine.insert_interrupted table=%s parts=%d", folder.parent.name, len(dropped))
            with latest.open("a", encoding="utf-8") as log:
                log.writelines(dropped)


def _tokens(log: str) -> Iterator[tuple[str, str]]:
    """Yields the parts with their tokens that a log adds and does not drop again."""
    added: dict[str, str] = {}
    for operation, part, token in re.findall(r"^(\d+)\t([^\t\n]+)\t([^\t\n]+)$", log, re.MULTILINE):
        if operation == _ADDED:
            added[token] = part
        else:
            added.pop(token, None)
    return ((part, token) for token, part in added.items())


def _last_blocks(parts: Iterable[str]) -> Iterator[int]:
    return (int(found[2]) for part in parts if (found := _PART.match(part)))
