"""The MCP SDK's own client, unchanged: calls of tools, a resource and the prompts of memctl mcp."""

import asyncio
import json
import os
import sys
from typing import Any

from mcp import Client, StdioServerParameters


async def main() -> None:
    """Print what each call brought, as JSON."""
    server = StdioServerParameters(
        command=sys.argv[1], args=["mcp"], env=dict(os.environ), cwd=os.getcwd()
    )
    async with Client(server) as client:

        async def call(tool: str, name: str) -> Any:
            return await client.call_tool(tool, json.loads(os.environ[name]))

        recalled = await call("search", "E2E_SEARCH")
        refused = await call("read", "E2E_READ")
        saved = await call("save", "E2E_TOOL")
        prompts = (await client.list_prompts()).prompts
        resources = (await client.list_resources()).resources
        seen = {
            "recalled": "".join(block.text for block in recalled.content),
            "refused": refused.is_error,
            "saved": saved.structured_content["path"],
            "prompts": [prompt.name for prompt in prompts],
            "resources": [str(resource.uri) for resource in resources],
        }
    sys.stdout.write(json.dumps(seen) + "\n")


asyncio.run(main())
