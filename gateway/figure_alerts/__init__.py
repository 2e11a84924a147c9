"""Alerts on any figure (docs/alerts.md). `services` change them, `look` measures one, `check` does
so for those that are due and says what follows, and `events` keeps what happened and has it sent by
`gateway.alerts`."""
