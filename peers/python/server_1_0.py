"""An agent made with the official Python SDK (1.x): both versions, JSON-RPC and HTTP+JSON, on loopback.

What it does is decided by the words of the message: see `answer`.
"""

import asyncio
import sys

import uvicorn
from a2a.helpers.proto_helpers import get_message_text, new_task_from_user_message
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types.a2a_pb2 import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Part
from starlette.applications import Starlette


class Words(AgentExecutor):
    async def execute(self, context, queue):
        task = context.current_task
        is_second = task is not None
        if task is None:
            task = new_task_from_user_message(context.message)
            await queue.enqueue_event(task)
        updater = TaskUpdater(queue, task.id, task.context_id)
        await self.answer(updater, get_message_text(context.message), is_second)

    async def answer(self, updater, words, is_second):
        def said(text):
            return updater.new_agent_message([Part(text=text)])

        await updater.start_work()
        if is_second:
            await updater.add_artifact([Part(text=f"you chose {words}")])
            await updater.complete()
        elif "ask me" in words:
            await updater.requires_input(said("Which colour?"))
        elif "fail" in words:
            await updater.failed(said("the kettle is broken"))
        elif "for ever" in words:
            await asyncio.Event().wait()
        else:
            for piece in ["You said: ", words]:
                await updater.add_artifact(
                    [Part(text=piece)], artifact_id="words", append=piece is words, last_chunk=piece is words
                )
            await updater.complete()

    async def cancel(self, context, queue):
        await TaskUpdater(queue, context.task_id, context.context_id).cancel()


def card(url):
    def offered(binding, version, path):
        return AgentInterface(url=url + path, protocol_binding=binding, protocol_version=version)

    skill = AgentSkill(id="repeat", name="Repeat", description="Repeats words.", tags=["repeat", "echo"])
    return AgentCard(
        name="Parrot",
        description="Repeats what it is told, word for word.",
        version="1.0.0",
        supported_interfaces=[
            offered(binding, "1.0", path) for binding, path in BINDINGS if binding == wanted or wanted == "both"
        ],
        capabilities=AgentCapabilities(streaming=streaming, push_notifications=False),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[skill],
    )


BINDINGS = [("JSONRPC", "/rpc"), ("HTTP+JSON", "/rest")]

port, wanted, streaming = int(sys.argv[1]), sys.argv[2], sys.argv[3] == "streaming"
own = card(f"http://127.0.0.1:{port}")
handler = DefaultRequestHandler(agent_executor=Words(), task_store=InMemoryTaskStore(), agent_card=own)
routes = create_agent_card_routes(own) + create_jsonrpc_routes(handler, "/rpc", enable_v0_3_compat=True)
routes += create_rest_routes(handler, path_prefix="/rest")
uvicorn.run(Starlette(routes=routes), host="127.0.0.1", port=port, log_level="warning")
