"""The current health of the providers: latency windows and circuits for each upstream, shared by all web workers.

`targets` holds the names, `histogram` latencies in buckets, `window` the last five minutes, `circuit` the circuit
breaker, `summary` the figures of a window, `order` the order in which targets are tried, `monitor` the health in a web
worker's memory, `keys`, `messages` and `store` its form in Redis, and `reader` the figures for the management API.
"""
