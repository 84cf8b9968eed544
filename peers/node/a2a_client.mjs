// Talks to an agent with the official JavaScript SDK and prints what it saw, one JSON object a line.
// a2a_client.mjs URL TOKEN JSONRPC|HTTP+JSON stream|poll TEXT…: each text is one message of the same context.
import { randomUUID } from "node:crypto";
import { Role, TaskState } from "@a2a-js/sdk";
import { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory, RestTransportFactory } from "@a2a-js/sdk/client";

const [url, token, binding, way, ...texts] = process.argv.slice(2);
const fetchImpl = (address, init = {}) => {
  const headers = new Headers(init.headers);
  headers.set("Authorization", `Bearer ${token}`);
  return fetch(address, { ...init, headers });
};
const transports = { JSONRPC: JsonRpcTransportFactory, "HTTP+JSON": RestTransportFactory };
const factory = new ClientFactory({
  transports: [new transports[binding]({ fetchImpl })],
  cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
});
const client = await factory.createFromUrl(url);
const show = (seen) => console.log(JSON.stringify(seen));

let contextId = "";
let taskId = "";
for (const text of texts) {
  const parts = [{ content: { $case: "text", value: text }, metadata: undefined, filename: "", mediaType: "" }];
  const message = { messageId: randomUUID(), role: Role.ROLE_USER, parts, contextId, taskId };
  const states = [];
  const words = [];
  const wordsOf = (parts) => parts.flatMap((part) => (part.content?.$case === "text" ? [part.content.value] : []));
  const take = (kind, seen) => {
    contextId = seen.contextId || contextId;
    if (kind === "task" || kind === "statusUpdate") {
      states.push(TaskState[seen.status.state]);
      taskId = kind === "task" ? seen.id : seen.taskId;
      if (seen.status.message) words.push(...wordsOf(seen.status.message.parts));
    }
    if (kind === "task") words.push(...seen.artifacts.flatMap((artifact) => wordsOf(artifact.parts)));
    if (kind === "artifactUpdate") words.push(...wordsOf(seen.artifact.parts));
    if (kind === "message") words.push(...wordsOf(seen.parts));
  };
  if (way === "stream") {
    for await (const event of client.sendMessageStream({ message })) take(event.payload.$case, event.payload.value);
  } else {
    const seen = await client.sendMessage({ message });
    take("status" in seen ? "task" : "message", seen);
  }
  show({ states, words });
  if (states.at(-1) !== "TASK_STATE_INPUT_REQUIRED") taskId = "";
}
