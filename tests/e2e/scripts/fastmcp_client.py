"""FastMCP's own client, unchanged: calls of tools, the prompts and resources of memctl mcp."""

import asyncio
import json
import os
import sys
from typing import Any

from fastmcp import Client
from fastmcp.client.transports import StdioTransport


async def main() -> None:
    """Print what each call brought, as JSON."""
    transport = StdioTransport(
        command=sys.argv[1], args=["mcp"], env=dict(os.environ), cwd=os.getcwd()
    )
    async with Client(transport) as client:

        async def call(tool: str, name: str) -> Any:
            given = json.loads(os.environ[name])
            return await client.call_tool(tool, given, raise_on_error=False)

        recalled = await call("search", "E2E_SEARCH")
        refused = await call("read", "E2E_READ")
        saved = await call("save", "E2E_TOOL")
        seen = {
            "recalled": "".join(block.text for block in recalled.content),
            "refused": refused.is_error,
            "saved": saved.structured_content["path"],
            "prompts": [prompt.name for prompt in await client.list_prompts()],
            "resources": [str(resource.uri) for resource in await client.list_resources()],
        }
    sys.stdout.write(json.dumps(seen) + "\n")


asyncio.run(main())
