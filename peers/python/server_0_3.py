"""An agent made with the official Python SDK of the 0.3 line, JSON-RPC on loopback; it behaves as server_1_0 does."""

import asyncio
import sys

import uvicorn
from a2a.server.agent_execution import AgentExecutor
from a2a.server.apps import A2AStarletteApplication
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentSkill, Part, TextPart
from a2a.utils import new_task


class Words(AgentExecutor):
    async def execute(self, context, queue):
        task = context.current_task
        is_second = task is not None
        if task is None:
            task = new_task(context.message)
            await queue.enqueue_event(task)
        updater = TaskUpdater(queue, task.id, task.context_id)
        await self.answer(updater, context.get_user_input(), is_second)

    async def answer(self, updater, words, is_second):
        def part(text):
            return [Part(root=TextPart(text=text))]

        await updater.start_work()
        if is_second:
            await updater.add_artifact(part(f"you chose {words}"))
            await updater.complete()
        elif "ask me" in words:
            await updater.requires_input(updater.new_agent_message(part("Which colour?")), final=True)
        elif "fail" in words:
            await updater.failed(updater.new_agent_message(part("the kettle is broken")))
        elif "for ever" in words:
            await asyncio.Event().wait()
        else:
            await updater.add_artifact(part(f"You said: {words}"))
            await updater.complete()

    async def cancel(self, context, queue):
        await TaskUpdater(queue, context.task_id, context.context_id).cancel()


port, streaming = int(sys.argv[1]), sys.argv[2] == "streaming"
card = AgentCard(
    name="Old parrot",
    description="Repeats what it is told, word for word.",
    url=f"http://127.0.0.1:{port}/",
    version="1.0.0",
    capabilities=AgentCapabilities(streaming=streaming),
    default_input_modes=["text/plain"],
    default_output_modes=["text/plain"],
    skills=[AgentSkill(id="repeat", name="Repeat", description="Repeats words.", tags=["repeat", "echo"])],
)
handler = DefaultRequestHandler(agent_executor=Words(), task_store=InMemoryTaskStore())
app = A2AStarletteApplication(agent_card=card, http_handler=handler).build()
uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")
