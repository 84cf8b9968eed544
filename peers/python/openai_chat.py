"""The official `openai` client against an address and a token: models, a chat, a streamed chat, a refusal."""

import json
import sys

import openai

base, token = sys.argv[1:]
client = openai.OpenAI(base_url=base, api_key=token, max_retries=0)
models = [model.id for model in client.models.list()]
messages = [{"role": "user", "content": "hello"}]
plain = client.chat.completions.create(model=models[0], messages=messages)
streamed, usage = "", None
options = {"include_usage": True}
for chunk in client.chat.completions.create(model=models[0], messages=messages, stream=True, stream_options=options):
    usage = chunk.usage or usage
    streamed += "".join(choice.delta.content or "" for choice in chunk.choices)
try:
    openai.OpenAI(base_url=base, api_key="wrong", max_retries=0).models.list()
    refused = None
except openai.AuthenticationError as error:
    refused = error.status_code
print(json.dumps({
    "models": models,
    "plain": plain.choices[0].message.content,
    "finish": plain.choices[0].finish_reason,
    "plain_usage": plain.usage.total_tokens if plain.usage else None,
    "streamed": streamed,
    "usage": usage.total_tokens if usage else None,
    "refused": refused,
}))
