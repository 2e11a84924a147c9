"""The surface of embeddings."""

from __future__ import annotations

from gateway.surfaces.base import SurfaceRequest
from gateway.surfaces.embeddings.request import read
from gateway.surfaces.native_only import NativeOnlySurface


class EmbeddingsSurface(NativeOnlySurface):
    name = "embeddings"
    operation = "embeddings"

    def read(self, body: bytes) -> SurfaceRequest:
        return read(body)


SURFACE = EmbeddingsSurface()
