"""The surface of moderations."""

from __future__ import annotations

from gateway.surfaces.base import SurfaceRequest
from gateway.surfaces.native_only import NativeOnlySurface
from gateway.surfaces.operations.moderations import read


class ModerationsSurface(NativeOnlySurface):
    name = "moderations"
    operation = "moderations"

    def read(self, body: bytes) -> SurfaceRequest:
        return read(body)


SURFACE = ModerationsSurface()
