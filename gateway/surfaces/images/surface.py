"""The surface of the generation of images."""

from __future__ import annotations

from gateway.surfaces.base import SurfaceRequest
from gateway.surfaces.native_only import NativeOnlySurface
from gateway.surfaces.operations.images import read


class ImagesSurface(NativeOnlySurface):
    name = "images"
    operation = "images"

    def read(self, body: bytes) -> SurfaceRequest:
        return read(body)


SURFACE = ImagesSurface()
