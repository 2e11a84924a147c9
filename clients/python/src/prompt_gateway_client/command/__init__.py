"""The command `svc`, for pipelines: experiments over data sets, and data sets from files. It uses the API alone.

`run_experiment` is what `manage.py run_experiment` calls, too.
"""

from __future__ import annotations

from prompt_gateway_client.command.main import main, run_experiment

__all__ = ["main", "run_experiment"]
