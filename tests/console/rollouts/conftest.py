"""The fixtures of rollouts that tests of their pages use too."""

from tests.rollouts.conftest import still_clock as still_clock
