"""The command of the tables (`tests/tables/translated.py`)."""

import sys

from tests.gateway.surfaces.translations.outcomes import TABLES

sys.exit(TABLES.main())
