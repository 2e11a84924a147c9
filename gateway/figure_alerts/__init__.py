"""Alerts on any figure (docs/alerts.md). `services` change them, `look` measures one, `transitions` says what
follows, `check` does both for those that are due, and `events` keeps what happened and has it sent by
`gateway.alerts`."""
