"""Talks to an agent with the official Python SDK of the 0.3 line and prints what it saw, one JSON object a line.

client_0_3.py URL TOKEN stream|poll TEXT…: each text is one message of the same context.
"""

import asyncio
import json
import sys
import uuid

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import Message, Part, Role, Task, TaskQueryParams, TextPart
from a2a.utils import get_message_text


def show(**seen):
    print(json.dumps(seen), flush=True)


async def main(url, token, way, texts):
    async with httpx.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=30) as http:
        card = await A2ACardResolver(http, url).get_agent_card()
        show(card=card.name, skills=[skill.name for skill in card.skills])
        client = ClientFactory(ClientConfig(httpx_client=http, streaming=way == "stream")).create(card)
        context_id = task_id = None
        for text in texts:
            parts = [Part(root=TextPart(text=text))]
            message = Message(
                role=Role.user, message_id=str(uuid.uuid4()), parts=parts, context_id=context_id, task_id=task_id
            )
            states, task, words = [], None, []
            async for event in client.send_message(message):
                if isinstance(event, Message):
                    words.append(get_message_text(event))
                    continue
                task, _update = event
                states.append(task.status.state.value)
            if isinstance(task, Task):
                context_id = task.context_id
                task_id = task.id if task.status.state.value == "input-required" else None
                words += [part.root.text for artifact in task.artifacts or [] for part in artifact.parts]
            show(states=states, words=words)
        if isinstance(task, Task):
            again = await client.get_task(TaskQueryParams(id=task.id))
            show(task=again.status.state.value)


url, token, way, *texts = sys.argv[1:]
asyncio.run(main(url, token, way, texts))
