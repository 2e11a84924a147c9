"""The command of the tables (`tests/tables/translated.py`)."""

import sys

from tests.integrations.translations.outcomes import TABLES

sys.exit(TABLES.main())
