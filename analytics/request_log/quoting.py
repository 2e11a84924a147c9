"""How a request of the service itself names the request or the item whose texts it quotes.

What a judge grades and what an experiment asks again has the texts of somebody else's request in it: a deletion of that
one finds them by these attributes. Clients choose attributes too, so that only those of these sources count.
"""

from __future__ import annotations

JUDGE = "judge"
EXPERIMENT = "experiment"
SHADOW = "shadow"
SOURCES = (JUDGE, EXPERIMENT, SHADOW)
"""The values of the column `source` that such requests have."""

JUDGED_REQUEST = "judged_request_id"
"""The attribute of a judge's record that names the request whose answer it graded."""
ITEM_REQUEST = "experiment_item_request_id"
"""The attribute of an experiment's or a shadow's record that names the request that is answered again."""
ITEM = "experiment_dataset_item_id"
"""The attribute of an experiment's record that names the item of a data set that is answered."""
ATTRIBUTES = (JUDGED_REQUEST, ITEM_REQUEST, ITEM)
