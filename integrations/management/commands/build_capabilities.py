from __future__ import annotations

from integrations.capabilities.shipped import CAPABILITIES, build
from integrations.management.catalogs import CatalogCommand


class Command(CatalogCommand):
    help = "Build integrations/capabilities/capabilities.json from catalog_a and catalog_b."
    build = staticmethod(build)
    output = CAPABILITIES
