"""Scripted model servers in the forms that Codex CLI and Gemini CLI speak.

Texts and calls of tools.

The script, the record of requests and the delivery are those of ``tests.support.messages``.
"""

import json
from typing import Any

from tests.support.messages import STREAM, MessagesServer, ReplyBody
from tests.support.steps import ReceivedMessage, ScriptedReply, Step, Whole

_STREAM = {"Content-Type": STREAM}
_JSON = {"Content-Type": "application/json"}


class ResponsesServer(MessagesServer):
    """Answers POST …/responses as a stream, as OpenAI's Responses API does."""

    @property
    def messages(self) -> list[ReceivedMessage]:
        """The requests to the model, in order of arrival."""
        return [r for r in self.requests if r.route.endswith("/responses")]

    def decide(self, request: ReceivedMessage) -> Step:
        """Return what a request gets."""
        wanted = request.route.endswith("/responses")
        return self.next_step(request) if wanted else super().decide(request)

    def render(self, request: ReceivedMessage, step: Whole) -> ReplyBody:
        """Return a step as bytes."""
        if not isinstance(step, ScriptedReply):
            return super().render(request, step)
        number = request.number
        content = [{"type": "output_text", "text": _words(step)}]
        said = {"type": "message", "role": "assistant", "id": f"msg_{number}", "content": content}
        calls = [
            {
                "type": "function_call",
                "id": f"fc_{number}",
                "call_id": f"call_{number}",
                "name": block["name"],
                "arguments": json.dumps(block["input"]),
            }
            for block in step.content
            if block["type"] == "tool_use"
        ]
        items = [said, *calls]
        ended = {"id": f"resp_{number}", "output": items, "usage": {**_USED, **step.usage}}
        pieces = (
            event("response.created", response={"id": f"resp_{number}"}),
            *(
                event("response.output_item.done", output_index=index, item=item)
                for index, item in enumerate(items)
            ),
            event("response.completed", response=ended),
        )
        return ReplyBody(200, _STREAM, pieces)


class GeminiServer(MessagesServer):
    """Answers …:generateContent and …:streamGenerateContent as the Gemini API does."""

    @property
    def messages(self) -> list[ReceivedMessage]:
        """The requests to the model, in order of arrival."""
        return [r for r in self.requests if r.route.endswith("enerateContent")]

    def decide(self, request: ReceivedMessage) -> Step:
        """Return what a request gets."""
        wanted = request.route.endswith("enerateContent")
        return self.next_step(request) if wanted else super().decide(request)

    def render(self, request: ReceivedMessage, step: Whole) -> ReplyBody:
        """Return a step as bytes."""
        if not isinstance(step, ScriptedReply):
            return super().render(request, step)
        calls: list[dict[str, Any]] = [
            {"functionCall": {"name": block["name"], "args": block["input"]}}
            for block in step.content
            if block["type"] == "tool_use"
        ]
        content = {"role": "model", "parts": calls or [{"text": _words(step)}]}
        used = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        candidate = {"content": content, "finishReason": "STOP", "index": 0}
        body: dict[str, Any] = {"candidates": [candidate], "usageMetadata": used}
        if "stream" not in request.route:
            return ReplyBody(200, _JSON, (json.dumps(body).encode(),))
        piece = f"data: {json.dumps(body)}\r\n\r\n".encode()
        return ReplyBody(200, _STREAM, (piece,))


_USED = {
    "input_tokens": 1,
    "input_tokens_details": None,
    "output_tokens": 1,
    "output_tokens_details": None,
    "total_tokens": 2,
}


def _words(step: ScriptedReply) -> str:
    return "".join(str(block.get("text", "")) for block in step.content)


def event(kind: str, **members: Any) -> bytes:
    """Return one event of a stream."""
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **members})}\n\n".encode()
