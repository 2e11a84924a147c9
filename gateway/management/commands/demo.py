from __future__ import annotations

import asyncio
import logging
import secrets
from argparse import ArgumentParser
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from openai import AsyncOpenAI
from tqdm import tqdm

from gateway.demo import report
from gateway.demo.conversations import OWN_PROMPTS, DemoConversation, PromptFileError, read_conversations
from gateway.demo.player import Played, play_all
from gateway.demo.service import Access, ServiceError, own_access, running_service


class Command(BaseCommand):
    help = "Play conversations through the official OpenAI SDK, then print the session table and the cost."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--prompts", type=Path, default=OWN_PROMPTS, help="JSONL file of conversations")
        parser.add_argument("--limit", type=int, help="play only the first so many")
        parser.add_argument("--concurrency", type=int, default=4, help="conversations at the same time")
        parser.add_argument("--model", default="sandbox/echo")
        parser.add_argument("--base-url", help="a service elsewhere; needs --project-id and --api-key")
        parser.add_argument("--project-id")
        parser.add_argument("--api-key")

    def handle(self, *args: Any, **options: Any) -> None:
        # The SDK's HTTP client logs every request; the progress bar says enough.
        for name in ("httpx", "httpx2", "openai"):
            logging.getLogger(name).setLevel(logging.WARNING)
        try:
            conversations = read_conversations(options["prompts"], limit=options["limit"])
            with ExitStack() as stack:
                access = _access(stack, options)
                failed = self._run(access, conversations, options)
        except (PromptFileError, ServiceError, report.NotListedError) as error:
            raise CommandError(str(error)) from error
        if failed:
            raise CommandError(f"{failed} of {len(conversations)} conversations failed.")

    def _run(self, access: Access, conversations: list[DemoConversation], options: dict[str, Any]) -> int:
        prefix = f"demo-{secrets.token_hex(4)}"
        played = asyncio.run(_play(access, conversations, prefix, options))
        for item in played:
            if item.failure:
                self.stderr.write(f"{item.name}: {item.failure}")
        sessions = report.wait_for_sessions(access, prefix, played)
        names = {item.session_id: item.name for item in played}
        for line in report.table(sessions, names):
            self.stdout.write(line)
        return sum(1 for item in played if item.failure)


def _access(stack: ExitStack, options: dict[str, Any]) -> Access:
    if options["base_url"] is None:
        return own_access(stack.enter_context(running_service()))
    if options["project_id"] is None or options["api_key"] is None:
        raise CommandError("--base-url needs --project-id and --api-key.")
    return Access(options["base_url"].rstrip("/"), options["project_id"], options["api_key"])


async def _play(
    access: Access, conversations: list[DemoConversation], prefix: str, options: dict[str, Any]
) -> list[Played]:
    client = AsyncOpenAI(base_url=f"{access.base_url}/api/gateway/v1", api_key=access.api_key)
    with tqdm(total=len(conversations), unit="conversation", dynamic_ncols=True) as bar:
        totals = {"requests": 0, "tool_calls": 0, "failed": 0}

        def done(item: Played) -> None:
            totals["requests"] += item.requests
            totals["tool_calls"] += item.tool_calls
            totals["failed"] += bool(item.failure)
            bar.set_postfix(totals, refresh=False)
            bar.update()

        async with client:
            return await play_all(
                client,
                conversations,
                model=options["model"],
                session_prefix=prefix,
                concurrency=options["concurrency"],
                done=done,
            )
