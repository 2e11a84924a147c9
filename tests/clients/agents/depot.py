"""An MCP server over standard input and output with one tool, which a coding agent starts.

It speaks the protocol itself (https://modelcontextprotocol.io/specification), because the SDK takes seconds to load.
"""

from __future__ import annotations

import json
import sys
from typing import Any

_STOCK = {
    "name": "stock",
    "description": "Returns how many of an item are in stock.",
    "inputSchema": {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]},
}


def _result(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "initialize":
            server = {"name": "depot", "version": "1"}
            return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": server}
        case "tools/list":
            return {"tools": [_STOCK]}
        case "tools/call":
            return {"content": [{"type": "text", "text": f"7 of {params['arguments']['item']}"}]}
    return {}


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            result = _result(message["method"], message.get("params") or {})
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
