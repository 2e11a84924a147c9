from __future__ import annotations

from integrations.management.catalogs import CatalogCommand
from integrations.pricing.shipped import PRICE_LIST, build


class Command(CatalogCommand):
    help = "Build integrations/pricing/price_list.json from catalog_a and catalog_b."
    build = staticmethod(build)
    output = PRICE_LIST
