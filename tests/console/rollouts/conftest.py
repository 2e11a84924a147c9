from tests.rollouts.conftest import still_clock as still_clock
