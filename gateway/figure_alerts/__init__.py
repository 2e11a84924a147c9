"""Alerts on any figure (docs/alerts.md).

`services` change them, `look` measures one, `check` runs those that are due and decides what follows, and `events`
keeps the history and has it sent by `gateway.alerts`.
"""
