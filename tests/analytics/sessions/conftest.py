from __future__ import annotations

import pytest

from core.models import Project
from tests.analytics.telemetry.sending import Sender
from tests.factories.core import make_key


@pytest.fixture
def sender(project: Project) -> Sender:
    """An application that sends spans and logs."""
    return Sender(make_key(project, scopes=["gateway"])[1])
