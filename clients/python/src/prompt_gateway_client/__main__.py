"""`python -m prompt_gateway_client` is the command `svc`."""

from __future__ import annotations

import sys

from prompt_gateway_client.command import main

sys.exit(main(sys.argv[1:]))
