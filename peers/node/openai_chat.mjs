// The official `openai` client against an address and a token: models, a chat, a streamed chat.
import OpenAI from "openai";

const [baseURL, apiKey] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
const models = (await client.models.list()).data.map((model) => model.id);
const messages = [{ role: "user", content: "hello" }];
const plain = await client.chat.completions.create({ model: models[0], messages });
let streamed = "";
let usage = null;
const options = { stream: true, stream_options: { include_usage: true } };
for await (const chunk of await client.chat.completions.create({ model: models[0], messages, ...options })) {
  usage = chunk.usage ?? usage;
  streamed += chunk.choices.map((choice) => choice.delta.content ?? "").join("");
}
const seen = { models, plain: plain.choices[0].message.content, streamed, usage: usage?.total_tokens ?? null };
console.log(JSON.stringify(seen));
