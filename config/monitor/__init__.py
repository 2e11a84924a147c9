"""The monitor of one host: it asks slow questions in the background and shows the latest answers at once.

`watch` asks the subjects of `subjects` and keeps what they say; `state` is how that reaches web workers; `exposition`
makes Prometheus' text of it, which `endpoint` serves on a port of its own and `pages` to keys; `alarms` finds what a
person has to see to.
"""
