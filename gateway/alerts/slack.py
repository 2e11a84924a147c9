"""The body of Slack's incoming webhooks: `{"text": "…"}`, in which `&`, `<` and `>` are escaped, since they begin links
and mentions.

Sources: https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks and
https://docs.slack.dev/messaging/formatting-message-text. Mattermost takes the same body
(https://developers.mattermost.com/integrate/webhooks/incoming), and so does Discord at the address of a webhook with
`/slack` behind it (https://discord.com/developers/docs/resources/webhook#execute-slackcompatible-webhook).
"""

from __future__ import annotations

import json

from gateway.alerts.messages import Message

_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def body_of(message: Message) -> bytes:
    text = f"*{_escaped(message.subject)}*\n{_escaped(message.text.strip())}"
    return json.dumps({"text": text}, separators=(",", ":")).encode()


def _escaped(text: str) -> str:
    return text.translate(_ESCAPES)
