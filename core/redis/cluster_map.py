from __future__ import annotations

import asyncio
from typing import Any

from redis.asyncio.cluster import NodesManager
from redis.crc import key_slot

from core.redis.clients import background_client

Node = tuple[str, int]


class ClusterMap:
    """The primaries of a cluster by slot; the object belongs to one event loop."""

    def __init__(self, url: str, *, seconds: float) -> None:
        client: Any = background_client(url, connect_seconds=seconds)
        self._seconds = seconds
        self._nodes: NodesManager = client.nodes_manager
        self._moved: dict[int, Node] = {}

    async def read(self) -> None:
        async with asyncio.timeout(self._seconds):
            await self._nodes.initialize()
        self._moved.clear()

    def primaries(self) -> set[Node]:
        # The slots of a range share one list of nodes, the primary first.
        owners = {id(nodes): nodes[0] for nodes in self._nodes.slots_cache.values()}
        return {(node.host, int(node.port)) for node in owners.values()}

    def primary_of(self, tag: str) -> Node | None:
        slot = key_slot(tag.encode())
        moved = self._moved.get(slot)
        if moved is not None:
            return moved
        owners = self._nodes.slots_cache.get(slot)
        return (owners[0].host, int(owners[0].port)) if owners else None

    def note_moved(self, slot: int, node: Node) -> None:
        self._moved[slot] = node

    async def close(self) -> None:
        await self._nodes.aclose()
        await self._nodes.aclose("startup_nodes")
