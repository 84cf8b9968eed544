"""Talks to an agent with the official Python SDK (1.x) and prints what it saw, one JSON object a line.

client_1_0.py URL TOKEN BINDING stream|poll TEXT…: each text is one message of the same context.
"""

import asyncio
import json
import sys

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.helpers.proto_helpers import get_message_text, get_stream_response_text, new_text_message
from a2a.types.a2a_pb2 import GetTaskRequest, ListTasksRequest, Role, SendMessageRequest, TaskState


def show(**seen):
    print(json.dumps(seen), flush=True)


async def main(url, token, binding, way, texts):
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(headers=headers, timeout=30) as http:
        card = await A2ACardResolver(http, url).get_agent_card()
        show(card=card.name, skills=[skill.name for skill in card.skills])
        config = ClientConfig(
            httpx_client=http, streaming=way == "stream", supported_protocol_bindings=[binding], use_client_preference=True
        )
        client = ClientFactory(config).create(card)
        context_id = task_id = None
        for text in texts:
            message = new_text_message(text, role=Role.ROLE_USER)
            if context_id:
                message.context_id = context_id
            if task_id:
                message.task_id = task_id
            states, words = [], []
            async for event in client.send_message(SendMessageRequest(message=message)):
                kind = event.WhichOneof("payload")
                inner = getattr(event, kind)
                context_id = inner.context_id or context_id
                if kind in ("task", "status_update"):
                    states.append(TaskState.Name(inner.status.state))
                    task_id = inner.id if kind == "task" else inner.task_id
                text = get_stream_response_text(event)
                if text:
                    words.append(text)
            is_open = states and states[-1] == "TASK_STATE_INPUT_REQUIRED"
            last = task_id
            task_id = task_id if is_open else None
            show(states=states, words=words)
        if last:
            task = await client.get_task(GetTaskRequest(id=last))
            listed = await client.list_tasks(ListTasksRequest())
            texts = [part.text for artifact in task.artifacts for part in artifact.parts]
            show(task=TaskState.Name(task.status.state), artifacts=texts, listed=len(listed.tasks),
                 said=get_message_text(task.status.message))


url, token, binding, way, *texts = sys.argv[1:]
asyncio.run(main(url, token, binding, way, texts))
