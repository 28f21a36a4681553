"""python-lsp-jsonrpc, unchanged: requests and an error over memd's socket."""

import json
import os
import socket
import sys
import threading
from typing import Any

from pylsp_jsonrpc.endpoint import Endpoint
from pylsp_jsonrpc.exceptions import JsonRpcException
from pylsp_jsonrpc.streams import JsonRpcStreamReader, JsonRpcStreamWriter

with socket.socket(socket.AF_UNIX) as connection:
    connection.connect(os.environ["E2E_SOCKET"])
    reader = JsonRpcStreamReader(connection.makefile("rb"))
    endpoint = Endpoint({}, JsonRpcStreamWriter(connection.makefile("wb")).write)
    threading.Thread(target=reader.listen, args=(endpoint.consume,), daemon=True).start()

    def call(method: str, name: str) -> Any:
        """Return the answer to a request whose parameters stand in the environment."""
        return endpoint.request(method, json.loads(os.environ[name])).result(10)

    seen = {"recalled": call("prefetch", "E2E_RECALL")["block"]}
    try:
        call("memory.read", "E2E_ABSENT")
    except JsonRpcException as error:
        seen["refused"] = error.code == 1001
    seen["saved"] = call("memory.write", "E2E_SAVE")["path"]
    sys.stdout.write(json.dumps(seen))
    connection.shutdown(socket.SHUT_RDWR)
