/**
 * A provider of models whose answers a test writes: a real HTTP server on the loopback device that
 * speaks chat completions, also as Mistral does, responses, messages, Gemini's protocol and Converse, streamed and not, and fails as told. It records what it was
 * asked and how each exchange ended, and says what it counted, so that a ledger can be held to it.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { converse } from './scripted-converse.ts';
import { gemini } from './scripted-gemini.ts';
import { mistral } from './scripted-mistral.ts';
import {
  type Body,
  type Content,
  chat,
  type Finish,
  messages,
  type Protocol,
  type ReportedUsage,
} from './scripted-protocols.ts';
import { responses } from './scripted-responses.ts';
import { waitFor } from './wait-for.ts';

/** How a request is answered. Without anything: an empty text. */
export interface Reply {
  readonly text?: string;
  /** Whether the text is a refusal; in chat completions and responses. */
  readonly isRefusal?: boolean;
  /** Pictures as base64; in chat completions. */
  readonly pictures?: readonly string[];
  /**
   * Before the text; the signature in messages, and as the encrypted content of responses. As DeepSeek does, a chat then refuses a dialogue
   * with an answer's calls of tools without its `reasoning_content`.
   */
  readonly thinking?: { readonly text: string; readonly signature: string };
  /** A text as `input` is sent as it is, so that it need not be JSON. */
  readonly toolCalls?: readonly {
    readonly name: string;
    readonly input: unknown;
    readonly id?: string;
  }[];
  /** Left out, it is what the content says. */
  readonly finish?: Finish;
  /** Null is a provider that does not say; left out, a quarter of the characters, rounded up. */
  readonly usage?: ReportedUsage | null;
  /** Characters of a piece of a stream; 8. */
  readonly piece?: number;
  /** Answers with one document even when a stream is asked for, as some servers and gateways do. */
  readonly ignoresStream?: boolean;
  /** Milliseconds before each piece. */
  readonly everyMs?: number;
  /** Holds the first byte back. */
  readonly until?: Promise<unknown>;
  /** Stops after so many pieces, or in the middle of a document, until this has come true. */
  readonly hold?: { readonly after: number; readonly until: Promise<unknown> };
  readonly fault?: Fault;
  /** Pieces of a stream before `fault`; 2. */
  readonly faultAfter?: number;
}

export type Fault =
  | {
      readonly status: number;
      readonly headers?: Readonly<Record<string, string>>;
      /** Left out, an error as the protocol has it. */
      readonly body?: string | object;
    }
  /** Destroys the connection. */
  | 'cut'
  /** Ends the answer in order, but before its end. */
  | 'short'
  /** Sends what is not JSON. */
  | 'malformed'
  /** Says in the stream that it failed; without a stream, in place of the answer. */
  | 'error-event';

/** A request as it arrived. */
export interface ScriptedRequest {
  /** From 0, in the order of arrival. */
  readonly index: number;
  readonly protocol: string;
  readonly model: string;
  readonly system: string;
  /** As they stand in the body; of responses, the items of its input. */
  readonly messages: readonly Body[];
  /** Names of the tools on offer. */
  readonly tools: readonly string[];
  /** The results of tools with which the dialogue ends. */
  readonly toolResults: readonly string[];
  readonly body: Body;
  readonly headers: Readonly<Record<string, string>>;
  /** The client's port: the connection that it came by. */
  readonly port: number;
  /** Milliseconds on the monotonic clock of this process. */
  readonly at: number;
}

/** A request, and what became of it. */
export interface RecordedRequest extends ScriptedRequest {
  /** Null while it is under way; `aborted` when the client went away, `cut` when the script did. */
  readonly endedBy: 'answered' | 'aborted' | 'cut' | null;
  /** What the answer cost, said or not; null when there was no answer to count. */
  readonly cost: ReportedUsage | null;
}

export type Script = (request: ScriptedRequest) => Reply | Promise<Reply>;

export interface ScriptedProvider {
  /** `http://127.0.0.1:port`. */
  readonly url: string;
  readonly openaiBaseUrl: string;
  readonly anthropicBaseUrl: string;
  readonly requests: readonly RecordedRequest[];
  /** Says how every request from now on is answered. */
  script(script: Script): void;
  /** The first `n` requests, once they are there. */
  received(n: number): Promise<readonly RecordedRequest[]>;
  /** The request, once it has ended. */
  ended(index: number): Promise<RecordedRequest>;
  close(): Promise<void>;
}

/** The same answer to everything. */
export function answering(text: string, reply: Reply = {}): Script {
  return () => ({ text, ...reply });
}

/** The first request gets the first reply, and so on; the last one is repeated. */
export function inTurn(...replies: readonly Reply[]): Script {
  let next = 0;
  return () => {
    const reply = replies[Math.min(next, replies.length - 1)] ?? {};
    next += 1;
    return reply;
  };
}

/** Calls these tools, and answers when the dialogue ends with their results. */
export function callingTools(calls: NonNullable<Reply['toolCalls']>, answer: string): Script {
  return ({ toolResults }) => (toolResults.length > 0 ? { text: answer } : { toolCalls: calls });
}

/** Starts a provider on a free port; until it is told otherwise, it answers `Hello.`. */
export async function startScriptedProvider(
  options: { script?: Script } = {},
): Promise<ScriptedProvider> {
  const requests: Recording[] = [];
  /** What was thought before a call of a tool, by the call's id. */
  const thoughts: Thoughts = new Map();
  let script = options.script ?? answering('Hello.');
  const server = createServer((message, response) => {
    response.on('error', () => {});
    handle(message, response).catch((error: Error) => {
      // A script that throws is a mistake in a test, which sees it in the answer.
      if (!response.headersSent) sendJson(response, 500, { error: { message: error.message } });
      else response.destroy();
    });
  });

  async function handle(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const { url: address = '' } = message;
    const named = modelInAddress(address);
    const protocol =
      named?.protocol ?? [chat, messages, responses, mistral].find(({ path }) => path === address);
    const body = parsed(await textOf(message));
    // These stream by the address alone.
    if (named !== null && body !== undefined) {
      Object.assign(body, { model: named.model, stream: true });
    }
    if (protocol === undefined || message.method !== 'POST') {
      return sendJson(response, 404, { error: { message: `no ${message.method} ${message.url}` } });
    }
    const complaint =
      body === undefined
        ? 'the body is not JSON'
        : (protocol.complaint(body) ?? forgottenIn(protocol, body, thoughts));
    if (complaint !== null) return sendJson(response, 400, protocol.errorBody(complaint));
    const request = recorded(requests.length, protocol, body, message);
    requests.push(request);
    response.once('close', () => {
      request.endedBy ??= response.writableFinished ? 'answered' : 'aborted';
    });
    const reply = await script(request);
    const content = contentOf(reply, request);
    if (reply.thinking !== undefined) {
      for (const { id } of content.toolCalls) thoughts.set(id, reply.thinking);
    }
    if (typeof reply.fault !== 'object') request.cost = costOf(reply, content, request);
    await send({ protocol, request, reply, content, response });
  }

  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    openaiBaseUrl: `${url}/v1`,
    anthropicBaseUrl: `${url}/v1`,
    requests,
    script(next) {
      script = next;
    },
    received: (n) =>
      waitFor(() => (requests.length >= n ? requests.slice(0, n) : null), {
        describe: () => `${n} requests at the provider; there were ${requests.length}`,
      }),
    ended: (index) =>
      waitFor(() => (requests[index]?.endedBy ? requests[index] : null), {
        describe: `the end of request ${index} at the provider`,
      }),
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

function modelInAddress(address: string): { protocol: Protocol; model: string } | null {
  const [, ofGemini] =
    /^\/v1beta\/models\/(.+):streamGenerateContent\?alt=sse$/.exec(address) ?? [];
  if (ofGemini !== undefined) return { protocol: gemini, model: decodeURIComponent(ofGemini) };
  const [, ofBedrock] = /^\/model\/([^/]+)\/converse-stream$/.exec(address) ?? [];
  return ofBedrock === undefined
    ? null
    : { protocol: converse, model: decodeURIComponent(ofBedrock) };
}

type Recording = { -readonly [K in keyof RecordedRequest]: RecordedRequest[K] };

type Thoughts = Map<string, NonNullable<Reply['thinking']>>;

/** What a dialogue leaves out of what was thought; null when it has everything. */
function forgottenIn(protocol: Protocol, body: Body, thoughts: Thoughts): string | null {
  if (protocol === responses) return forgottenItemIn(body, thoughts);
  if (protocol !== chat) return null;
  for (const { role, tool_calls: calls = [], reasoning_content } of body.messages) {
    if (role !== 'assistant') continue;
    for (const { id } of calls) {
      const thought = thoughts.get(id);
      const accepted = [thought?.text, '[withheld]'];
      if (thought !== undefined && !accepted.includes(reasoning_content)) {
        return 'The `reasoning_content` in the thinking mode must be passed back to the API.';
      }
    }
  }
  return null;
}

/** Within an exchange the reasoning goes before the calls that it led to. */
function forgottenItemIn({ input }: Body, thoughts: Thoughts): string | null {
  const exchange = input.slice(1 + input.findLastIndex((item: Body) => item.role === 'user'));
  const seen = new Set(exchange.map((item: Body) => item.encrypted_content));
  for (const { type, call_id: id } of exchange) {
    const thought = type === 'function_call' ? thoughts.get(id) : undefined;
    if (thought !== undefined && !seen.has(thought.signature)) {
      return `Item '${id}' of type 'function_call' was provided without its required 'reasoning' item.`;
    }
  }
  return null;
}

function recorded(
  index: number,
  protocol: Protocol,
  body: Body,
  message: IncomingMessage,
): Recording {
  return {
    index,
    protocol: protocol.name,
    model: body.model,
    system: protocol.system(body),
    messages: protocol.dialogue(body),
    tools: protocol.toolNames(body),
    toolResults: protocol.toolResults(body),
    body,
    headers: message.headers as Record<string, string>,
    port: message.socket.remotePort ?? 0,
    at: performance.now(),
    endedBy: null,
    cost: null,
  };
}

function contentOf(reply: Reply, request: ScriptedRequest): Omit<Content, 'usage'> {
  const toolCalls = (reply.toolCalls ?? []).map((call, n) => ({
    id: call.id ?? `call_${request.index}_${n}`,
    name: call.name,
    input: typeof call.input === 'string' ? call.input : JSON.stringify(call.input),
  }));
  return {
    id: `answer_${request.index}`,
    model: request.model,
    thinking: reply.thinking,
    text: reply.text ?? '',
    isRefusal: reply.isRefusal ?? false,
    pictures: reply.pictures ?? [],
    toolCalls,
    finish: reply.finish ?? (toolCalls.length > 0 ? 'tool-calls' : 'stop'),
  };
}

function costOf(
  reply: Reply,
  content: Omit<Content, 'usage'>,
  request: ScriptedRequest,
): ReportedUsage {
  if (reply.usage) return reply.usage;
  const inputs = content.toolCalls.map(({ input }) => input).join('');
  return {
    prompt: Math.ceil(JSON.stringify(request.messages).length / 4),
    completion: Math.ceil((content.text.length + inputs.length) / 4),
  };
}

async function send(exchange: {
  protocol: Protocol;
  request: Recording;
  reply: Reply;
  content: Omit<Content, 'usage'>;
  response: ServerResponse;
}): Promise<void> {
  const { protocol, request, reply, response } = exchange;
  const { fault } = reply;
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  await orGone(reply.until, gone.signal);
  if (gone.signal.aborted) return;
  if (typeof fault === 'object') {
    const body = fault.body ?? protocol.errorBody(`scripted ${fault.status}`);
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    response.writeHead(fault.status, { 'content-type': 'application/json', ...fault.headers });
    response.end(text);
    return;
  }
  const content = { ...exchange.content, usage: reply.usage === null ? null : request.cost };
  const cutOff = () => {
    request.endedBy = 'cut';
    response.destroy();
  };
  if (request.body.stream !== true || reply.ignoresStream === true) {
    if (fault === 'error-event') {
      return sendJson(response, 200, protocol.errorBody('scripted failure'));
    }
    const text = JSON.stringify(protocol.whole(content));
    const half = text.slice(0, text.length / 2);
    response.writeHead(200, { 'content-type': 'application/json' });
    if (fault === 'cut') return void response.write(half, cutOff);
    response.write(half);
    await orGone(reply.hold?.until, gone.signal);
    if (!gone.signal.aborted) response.end(fault === undefined ? text.slice(half.length) : '');
    return;
  }
  const { head, pieces, tail } = protocol.events(content, reply.piece ?? 8, request.body);
  response.writeHead(200, {
    'content-type': protocol.contentType ?? 'text/event-stream',
  });
  for (const event of head) response.write(event);
  const until = fault === undefined ? pieces.length : (reply.faultAfter ?? 2);
  for (const [index, event] of pieces.slice(0, until).entries()) {
    if (reply.hold?.after === index) await orGone(reply.hold.until, gone.signal);
    if (reply.everyMs !== undefined) {
      await pause(reply.everyMs, undefined, { signal: gone.signal }).catch(() => {});
    }
    if (gone.signal.aborted) return;
    if (!response.write(event)) await orGone(once(response, 'drain'), gone.signal);
  }
  if (reply.hold !== undefined && reply.hold.after >= until) {
    await orGone(reply.hold.until, gone.signal);
  }
  switch (fault) {
    case 'cut':
      // What was written is on its way before the connection is gone.
      response.write(': cut\n\n', cutOff);
      return;
    case 'short':
      response.end();
      return;
    case 'malformed':
      response.end('data: {"not": json\n\n');
      return;
    case 'error-event':
      response.end(protocol.errorEvent('scripted failure'));
      return;
    default:
      for (const event of tail) response.write(event);
      response.end();
  }
}

/** Waits for what a test holds back, or for the client to go away. */
async function orGone(until: Promise<unknown> | undefined, gone: AbortSignal): Promise<void> {
  if (until === undefined || gone.aborted) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  gone.addEventListener('abort', () => resolve(), { once: true });
  await Promise.race([until, promise]);
}

function sendJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

async function textOf(message: IncomingMessage): Promise<string> {
  let text = '';
  message.setEncoding('utf8');
  for await (const part of message) text += part;
  return text;
}

function parsed(text: string): Body {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
