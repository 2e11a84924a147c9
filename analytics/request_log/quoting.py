"""How a request of the service itself names the request or item whose texts it quotes.

A judge's or an experiment's request contains texts of another request, whose deletion finds it by these attributes.
Clients choose attributes too, so they count only for these sources.
"""

from __future__ import annotations

from analytics.request_log.sources import Source

JUDGE, EXPERIMENT, SHADOW = Source.JUDGE.value, Source.EXPERIMENT.value, Source.SHADOW.value
SOURCES = (JUDGE, EXPERIMENT, SHADOW)
"""The values of the column `source` that such requests have."""

JUDGED_REQUEST = "judged_request_id"
"""The attribute of a judge's record that names the request whose answer it graded."""
ITEM_REQUEST = "experiment_item_request_id"
"""The attribute of an experiment's or a shadow's record that names the request that is answered again."""
ITEM = "experiment_dataset_item_id"
"""The attribute of an experiment's record that names the item of a data set that is answered."""
ATTRIBUTES = (JUDGED_REQUEST, ITEM_REQUEST, ITEM)
