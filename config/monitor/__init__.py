"""The monitor of one host: it asks slow questions in the background and shows the latest answers at once.

`run` asks the subjects of `subjects` and keeps their latest answers, and `state` passes these to the web workers.
`exposition` formats them for Prometheus; `run` serves this text on a port of its own, `pages` to callers with a key.
`alarms` decides which notices operators get.
"""
