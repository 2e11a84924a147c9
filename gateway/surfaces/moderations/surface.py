"""The surface of moderations."""

from __future__ import annotations

from gateway.surfaces.base import SurfaceRequest
from gateway.surfaces.moderations.request import read
from gateway.surfaces.native_only import NativeOnlySurface


class ModerationsSurface(NativeOnlySurface):
    name = "moderations"
    operation = "moderations"

    def read(self, body: bytes) -> SurfaceRequest:
        return read(body)


SURFACE = ModerationsSurface()
