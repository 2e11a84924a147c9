"""Watches over one host: asks what may be slow to answer, in the background, and shows and tells what it found last.

`watch` asks the subjects of `subjects` and keeps what they say; `state` is how that reaches web workers; `exposition`
makes Prometheus' text of it, which `endpoint` serves on a port of its own and `pages` to keys; `alarms` finds what a
person has to see to.
"""
