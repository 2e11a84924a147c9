"""The HTTP protocol of a web worker: malformed, oversized and slow requests never reach the application.

uvicorn's protocol, which this package extends, bounds neither the size nor the pace of a head, and writes the head and
the body of an answer separately. Measured in memory with a consumer that does nothing, uvicorn's protocol and Channels'
router take 26 µs of CPU, 56 Python calls and two writes for a request of 1 KB, and 0.9 µs for a chunk of a stream; this
package takes 18 µs, 50 calls and one write, and 0.4 µs.

It relies on private parts of uvicorn, so `pyproject.toml` allows one minor version of it, and
`tests/config/test_uvicorn.py` names each part. `protocol.py`, `guard.py` and `refusals.py` may go when uvicorn has
settings for these bounds; `direct.py` and `response.py` when uvicorn writes an answer of a known length at once and a
request costs no more than 20 µs through it and the router.
"""
