"""The surface of embeddings."""

from __future__ import annotations

from gateway.surfaces.base import SurfaceRequest
from gateway.surfaces.native_only import NativeOnlySurface
from gateway.surfaces.operations.embeddings import read


class EmbeddingsSurface(NativeOnlySurface):
    name = "embeddings"
    operation = "embeddings"

    def read(self, body: bytes) -> SurfaceRequest:
        return read(body)


SURFACE = EmbeddingsSurface()
