"""The surface of reranking."""

from __future__ import annotations

from gateway.surfaces.base import SurfaceRequest
from gateway.surfaces.native_only import NativeOnlySurface
from gateway.surfaces.operations.rerank import read


class RerankSurface(NativeOnlySurface):
    name = "rerank"
    operation = "rerank"

    def read(self, body: bytes) -> SurfaceRequest:
        return read(body)


SURFACE = RerankSurface()
