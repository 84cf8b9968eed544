// An agent made with the official JavaScript SDK, JSON-RPC and HTTP+JSON on loopback; it behaves as the Python ones do.
import { randomUUID } from "node:crypto";
import { Role, TaskState } from "@a2a-js/sdk";
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } from "@a2a-js/sdk/server";
import { UserBuilder, agentCardHandler, jsonRpcHandler, restHandler } from "@a2a-js/sdk/server/express";
import express from "express";

const [port, binding] = process.argv.slice(2);
const text = (value) => ({ content: { $case: "text", value }, metadata: undefined, filename: "", mediaType: "" });

class Words {
  async execute(context, bus) {
    const { taskId, contextId, userMessage, task } = context;
    const status = (state, words) => {
      const parts = words === undefined ? undefined : [text(words)];
      const message = parts && { messageId: randomUUID(), role: Role.ROLE_AGENT, parts, contextId, taskId };
      const at = { state, message, timestamp: new Date().toISOString() };
      bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: at, metadata: undefined }));
    };
    const artifact = (words) => {
      const whole = { artifactId: "words", name: "words", description: "", parts: [text(words)], extensions: [], metadata: undefined };
      bus.publish(AgentEvent.artifactUpdate({ taskId, contextId, artifact: whole, append: false, lastChunk: true, metadata: undefined }));
    };
    const words = userMessage.parts.map((part) => part.content?.value ?? "").join("");
    const submitted = { state: TaskState.TASK_STATE_SUBMITTED, message: undefined, timestamp: new Date().toISOString() };
    const fresh = { id: taskId, contextId, status: submitted, artifacts: [], history: [userMessage], metadata: undefined };
    bus.publish(AgentEvent.task(task ?? fresh));
    status(TaskState.TASK_STATE_WORKING);
    if (task) {
      artifact(`you chose ${words}`);
      status(TaskState.TASK_STATE_COMPLETED);
    } else if (words.includes("ask me")) {
      status(TaskState.TASK_STATE_INPUT_REQUIRED, "Which colour?");
    } else if (words.includes("fail")) {
      status(TaskState.TASK_STATE_FAILED, "the kettle is broken");
    } else {
      artifact(`You said: ${words}`);
      status(TaskState.TASK_STATE_COMPLETED);
    }
    bus.finished();
  }

  async cancelTask() {}
}

const base = `http://127.0.0.1:${port}`;
const path = binding === "JSONRPC" ? "/rpc" : "/rest";
const card = {
  name: "Script parrot",
  description: "Repeats what it is told, word for word.",
  version: "1.0.0",
  supportedInterfaces: [{ url: base + path, protocolBinding: binding, protocolVersion: "1.0", tenant: "" }],
  capabilities: { streaming: true, pushNotifications: false, extensions: [] },
  defaultInputModes: ["text/plain"],
  defaultOutputModes: ["text/plain"],
  skills: [{ id: "repeat", name: "Repeat", description: "Repeats words.", tags: ["repeat"], examples: [], inputModes: [], outputModes: [], securityRequirements: [] }],
  securitySchemes: {},
  securityRequirements: [],
  signatures: [],
};
const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Words());
const userBuilder = UserBuilder.noAuthentication;
const app = express();
app.use("/.well-known/agent-card.json", agentCardHandler({ agentCardProvider: requestHandler }));
app.use("/rpc", jsonRpcHandler({ requestHandler, userBuilder }));
app.use("/rest", restHandler({ requestHandler, userBuilder }));
app.listen(Number(port), "127.0.0.1");
