"""The scripted server of ``messages`` in the OpenAI chat form, for tests.

with messages_server(text("hello"), kind=ScriptedChatServer) as server:
    ...  # POST {server.url}/v1/chat/completions
"""

from tests.support.messages import MessagesServer
from tests.support.messages_cache import count
from tests.support.messages_connection import ReplyBody
from tests.support.messages_replies import dump, output_tokens
from tests.support.messages_request import ReceivedMessage
from tests.support.messages_steps import Failure, ScriptedReply, Step, Whole

_PATH = "/v1/chat/completions"
# The reason why a reply stopped, in the words of the Messages API and of the chat form.
_STOP_REASONS = {"end_turn": "stop", "max_tokens": "length", "refusal": "content_filter"}


class ScriptedChatServer(MessagesServer):
    """A ``MessagesServer`` whose requests and replies have the OpenAI chat form.

    A request with a member in ``without`` is answered with 400.
    """

    @property
    def messages(self) -> list[ReceivedMessage]:
        """The requests for a completion, in order of arrival."""
        return [r for r in self.requests if r.route == _PATH]

    def decide(self, request: ReceivedMessage) -> Step:
        """Return the step of the script with which a request is answered."""
        if request.route != _PATH or not self.let_in(request):
            return super().decide(request)
        unknown = [name for name in request.members if name in self.without]
        if unknown:
            return Failure(400, f"Unsupported parameter: '{unknown[0]}'")
        return self.next_step(request)

    def render(self, request: ReceivedMessage, step: Whole) -> ReplyBody:
        """Return a step as bytes."""
        if not isinstance(step, ScriptedReply):
            return super().render(request, step)
        words = "".join(block.get("text", "") for block in step.content)
        prompt_tokens, completion_tokens = count(request.members), output_tokens(step)
        usage = {"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens}
        body = {
            "id": f"chatcmpl-{request.number}",
            "object": "chat.completion",
            "model": request.members.get("model", ""),
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": words},
                    "finish_reason": _STOP_REASONS[step.stop],
                }
            ],
            "usage": {**usage, **step.usage},
        }
        return ReplyBody(200, {"Content-Type": "application/json"}, (dump(body),))
