"""The headers of rate limits as lines, which plans write, and as the stages write them."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

from gateway.limits.claims import Admission
from gateway.pipeline.rate_headers import rate_headers, rate_lines

LIMIT = st.none() | st.integers(0, 2**40)


@given(st.integers(0, 2**51), LIMIT, LIMIT, LIMIT, LIMIT)
def test_lines__of_any_admission__are_its_headers(
    arrived_us: int, requests: int | None, requests_limit: int | None, tokens: int | None, tokens_limit: int | None
) -> None:
    admission = Admission("", requests, tokens, None, False, requests_limit, tokens_limit)

    lines = rate_lines(arrived_us, admission)

    assert lines == b"".join(b"%b: %b\r\n" % header for header in rate_headers(arrived_us, admission))
