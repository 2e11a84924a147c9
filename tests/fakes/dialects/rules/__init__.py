"""What each vendor refuses, as tables: a rule has a name, a source that shows the vendor's words, and a predicate.

A fake checks each request against its vendor's table before it answers, so that a request that the vendor would refuse
fails the test that sent it. `tests/integrations/refusals` triggers every rule with the vendor's SDK, and runs every
recorded exchange through the tables.
"""
