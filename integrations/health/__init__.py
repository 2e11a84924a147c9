"""The current health of the providers: latency windows and circuits per upstream, shared by all web workers.

`targets` names · `histogram` latencies in buckets · `window` the last five minutes · `circuit` when to stop asking ·
`summary` counts into figures · `order` whom to ask first · `monitor` what a web worker holds · `keys`, `messages`,
`store` the same in Redis · `reader` the figures for the management API.
"""
