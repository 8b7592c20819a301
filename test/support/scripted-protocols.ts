/**
 * The protocols that models are asked by, as their public documentation has them and written by hand, so that no client's
 * idea of them comes in: chat completions and responses (OpenAI; `scripted-responses.ts`) and messages (Anthropic).
 * Requests are judged as strictly as the real ones are.
 */

// biome-ignore lint/suspicious/noExplicitAny: bodies of many shapes
export type Body = any;

/** What a reply consists of, in no protocol's words. */
export interface Content {
  readonly id: string;
  readonly model: string;
  /** Signed, as messages have it; a chat has its text alone, as `reasoning_content`. */
  readonly thinking?: { readonly text: string; readonly signature: string } | undefined;
  readonly text: string;
  /** Whether the text is a refusal, which messages cannot say. */
  readonly isRefusal?: boolean;
  /** As base64; in chat completions, as gateways send them. */
  readonly pictures?: readonly string[];
  readonly toolCalls: readonly {
    readonly id: string;
    readonly name: string;
    readonly input: string;
  }[];
  readonly finish: Finish;
  /** Null for a provider that does not say. */
  readonly usage: ReportedUsage | null;
}

/** `prompt` includes what was read from the cache and written to it, `completion` the reasoning. */
export interface ReportedUsage {
  readonly prompt: number;
  readonly completion: number;
  readonly cacheRead?: number;
  readonly cacheWrite?: number;
  readonly reasoning?: number;
}
export type Finish = 'stop' | 'tool-calls' | 'length' | 'content-filter';

export interface Protocol {
  readonly name: string;
  readonly path: string;
  /** The messages of a request as they stand in its body. */
  dialogue(body: Body): Body[];
  system(body: Body): string;
  /** The texts of the results of tools with which the dialogue ends. */
  toolResults(body: Body): string[];
  toolNames(body: Body): string[];
  /** What is wrong with a request; null when nothing is. */
  complaint(body: Body): string | null;
  /** A whole answer, not streamed. */
  whole(content: Content): object;
  /** Of a stream, where it is no SSE. */
  readonly contentType?: string;
  /** What comes before the first piece, the pieces, and what comes after the last, as sent. */
  events(
    content: Content,
    piece: number,
    body: Body,
  ): { head: Sent[]; pieces: Sent[]; tail: Sent[] };
  errorBody(message: string): object;
  errorEvent(message: string): Sent;
}
type Sent = string | Buffer;

export const name = /^[a-zA-Z0-9_-]{1,64}$/;

/** Whether a message of the user has texts and pictures as data urls. */
function isOfParts({ role, content }: Body): boolean {
  const isPart = ({ type, text, image_url }: Body) =>
    type === 'text'
      ? typeof text === 'string'
      : type === 'image_url' && /^data:image\/[a-z]+;base64,/.test(image_url?.url);
  return role === 'user' && Array.isArray(content) && content.length > 0 && content.every(isPart);
}

/** Text in pieces of `size` characters; none for an empty text. */
export function cut(text: string, size: number): string[] {
  const pieces: string[] = [];
  for (let at = 0; at < text.length; at += size) pieces.push(text.slice(at, at + size));
  return pieces;
}

const chatFinish: Record<Finish, string> = {
  stop: 'stop',
  'tool-calls': 'tool_calls',
  length: 'length',
  'content-filter': 'content_filter',
};

export const chat: Protocol = {
  name: 'chat',
  dialogue: (body) => body.messages,
  path: '/v1/chat/completions',
  system: (body) =>
    body.messages
      .filter((message: Body) => message.role === 'system' || message.role === 'developer')
      .map((message: Body) => message.content)
      .join('\n'),
  toolResults(body) {
    const last = body.messages.findLastIndex((message: Body) => message.role !== 'tool');
    return body.messages.slice(last + 1).map((message: Body) => unmarked(message.content));
  },
  toolNames: (body) => (body.tools ?? []).map((tool: Body) => tool.function.name),
  complaint(body) {
    if (typeof body.model !== 'string') return 'model: a string is required';
    if (!Array.isArray(body.messages) || body.messages.length === 0) return 'messages: required';
    if (!chat.toolNames(body).every((one) => name.test(one))) return 'tools: a name is not valid';
    let unanswered = new Set<string>();
    for (const message of body.messages) {
      if (message.role === 'tool') {
        if (!unanswered.delete(message.tool_call_id)) {
          return `messages: no call ${message.tool_call_id} is unanswered`;
        }
        if (typeof message.content !== 'string') return 'messages: a result is no text';
        continue;
      }
      if (unanswered.size > 0) return `messages: calls without a result: ${[...unanswered]}`;
      const calls: Body[] = message.tool_calls ?? [];
      for (const call of calls) {
        if (call.type !== 'function') return 'messages: a call of no function';
        if (!name.test(call.function.name)) return 'messages: the name of a call is not valid';
        if (typeof call.function.arguments !== 'string') return 'messages: arguments are no text';
      }
      unanswered = new Set(calls.map((call) => call.id));
      if (unanswered.size < calls.length) return 'messages: two calls have the same id';
      const isText = typeof message.content === 'string' || isOfParts(message);
      if (calls.length === 0 && !isText) {
        return `messages: a message of ${message.role} has no content`;
      }
    }
    return unanswered.size > 0 ? 'messages: calls without a result' : null;
  },
  whole: ({ id, model, thinking, text, isRefusal, toolCalls, finish, usage }) => ({
    id,
    object: 'chat.completion',
    created: 1_700_000_000,
    model,
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: text === '' || isRefusal === true ? null : text,
          ...(isRefusal === true ? { refusal: text } : {}),
          ...(thinking === undefined ? {} : { reasoning_content: thinking.text }),
          ...(toolCalls.length > 0
            ? {
                tool_calls: toolCalls.map((call) => ({
                  id: call.id,
                  type: 'function',
                  function: { name: call.name, arguments: call.input },
                })),
              }
            : {}),
        },
        finish_reason: chatFinish[finish],
      },
    ],
    ...(usage === null ? {} : { usage: chatUsage(usage) }),
  }),
  events(content, size, body) {
    const base = {
      id: content.id,
      object: 'chat.completion.chunk',
      created: 1_700_000_000,
      model: content.model,
    };
    const chunk = (delta: object, finish: string | null = null) =>
      event({ ...base, choices: [{ index: 0, delta, finish_reason: finish }] });
    const calls = content.toolCalls.flatMap((call, index) => [
      {
        index,
        id: call.id,
        type: 'function',
        function: { name: call.name, arguments: '' },
      },
      ...cut(call.input, size).map((part) => ({ index, function: { arguments: part } })),
    ]);
    const isCounted = content.usage !== null && body.stream_options?.include_usage === true;
    return {
      head: [chunk({ role: 'assistant', content: '' })],
      pieces: [
        ...cut(content.thinking?.text ?? '', size).map((part) =>
          chunk({ reasoning_content: part, content: null }),
        ),
        ...cut(content.text, size).map((part) =>
          chunk(content.isRefusal ? { content: null, refusal: part } : { content: part }),
        ),
        ...(content.pictures ?? []).map((base64) =>
          chunk({
            images: [{ type: 'image_url', image_url: { url: `data:image/png;base64,${base64}` } }],
          }),
        ),
        ...calls.map((call) => chunk({ tool_calls: [call] })),
      ],
      tail: [
        chunk({}, chatFinish[content.finish]),
        ...(isCounted && content.usage !== null
          ? [event({ ...base, choices: [], usage: chatUsage(content.usage) })]
          : []),
        'data: [DONE]\n\n',
      ],
    };
  },
  errorBody: (message) => ({ error: { message, type: 'server_error', param: null, code: null } }),
  errorEvent: (message) => event({ error: { message, type: 'server_error', code: 500 } }),
};

function chatUsage({ prompt, completion, cacheRead, reasoning }: ReportedUsage) {
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    ...(cacheRead === undefined ? {} : { prompt_tokens_details: { cached_tokens: cacheRead } }),
    ...(reasoning === undefined
      ? {}
      : { completion_tokens_details: { reasoning_tokens: reasoning } }),
  };
}

function messagesInput({ prompt, cacheRead, cacheWrite }: ReportedUsage) {
  return {
    input_tokens: prompt - (cacheRead ?? 0) - (cacheWrite ?? 0),
    ...(cacheRead === undefined ? {} : { cache_read_input_tokens: cacheRead }),
    ...(cacheWrite === undefined ? {} : { cache_creation_input_tokens: cacheWrite }),
  };
}

export function event(data: object): string {
  return `data: ${JSON.stringify(data)}\n\n`;
}

const stopReason: Record<Finish, string> = {
  stop: 'end_turn',
  'tool-calls': 'tool_use',
  length: 'max_tokens',
  'content-filter': 'refusal',
};

export const messages: Protocol = {
  name: 'messages',
  dialogue: (body) => body.messages,
  path: '/v1/messages',
  system: (body) =>
    typeof body.system === 'string'
      ? body.system
      : (body.system ?? []).map((block: Body) => block.text).join('\n'),
  toolResults(body) {
    const { role, content } = body.messages.at(-1);
    if (role !== 'user' || !Array.isArray(content)) return [];
    const results = content.filter((block: Body) => block.type === 'tool_result');
    return results.map((block: Body) => unmarked(resultText(block)));
  },
  toolNames: (body) => (body.tools ?? []).map((tool: Body) => tool.name),
  complaint(body) {
    if (typeof body.model !== 'string') return 'model: Field required';
    if (!Number.isInteger(body.max_tokens)) return 'max_tokens: Field required';
    if (!Array.isArray(body.messages) || body.messages.length === 0) return 'messages: required';
    if (!messages.toolNames(body).every((one) => name.test(one))) return 'tools: invalid name';
    let unanswered = new Set<string>();
    for (const [index, message] of body.messages.entries()) {
      if (message.role !== 'user' && message.role !== 'assistant') return 'messages: unknown role';
      if (index === 0 && message.role !== 'user') return 'messages: the first is not the user';
      const blocks: Body[] =
        typeof message.content === 'string'
          ? [{ type: 'text', text: message.content }]
          : message.content;
      if (blocks.length === 0) return 'messages: content is empty';
      for (const block of blocks) {
        const wrong = blockComplaint(block, unanswered);
        if (wrong !== null) return `messages.${index}: ${wrong}`;
      }
      if (unanswered.size > 0) return `messages.${index}: tool_use without tool_result`;
      const uses = blocks.filter((block) => block.type === 'tool_use');
      unanswered = new Set(uses.map((block) => block.id));
      if (unanswered.size < uses.length) return 'messages: tool_use ids are not unique';
    }
    return unanswered.size > 0 ? 'messages: tool_use without tool_result' : null;
  },
  whole: ({ id, model, thinking, text, toolCalls, finish, usage }) => ({
    id,
    type: 'message',
    role: 'assistant',
    model,
    content: [
      ...(thinking === undefined
        ? []
        : [{ type: 'thinking', thinking: thinking.text, signature: thinking.signature }]),
      ...(text === '' ? [] : [{ type: 'text', text }]),
      ...toolCalls.map((call) => ({
        type: 'tool_use',
        id: call.id,
        name: call.name,
        input: JSON.parse(call.input),
      })),
    ],
    stop_reason: stopReason[finish],
    stop_sequence: null,
    ...(usage === null
      ? {}
      : { usage: { ...messagesInput(usage), output_tokens: usage.completion } }),
  }),
  events(content, size) {
    const { thinking, text, toolCalls, usage } = content;
    let index = -1;
    const block = (start: object, deltas: readonly object[]): string[] => {
      index += 1;
      return [
        named('content_block_start', { index, content_block: start }),
        ...deltas.map((delta) => named('content_block_delta', { index, delta })),
        named('content_block_stop', { index }),
      ];
    };
    const thought =
      thinking === undefined
        ? []
        : block({ type: 'thinking', thinking: '', signature: '' }, [
            ...cut(thinking.text, size).map((part) => ({ type: 'thinking_delta', thinking: part })),
            { type: 'signature_delta', signature: thinking.signature },
          ]);
    const said =
      text === ''
        ? []
        : block(
            { type: 'text', text: '' },
            cut(text, size).map((part) => ({ type: 'text_delta', text: part })),
          );
    const used = toolCalls.flatMap((call) =>
      block(
        { type: 'tool_use', id: call.id, name: call.name, input: {} },
        ['', ...cut(call.input, size)].map((part) => ({
          type: 'input_json_delta',
          partial_json: part,
        })),
      ),
    );
    const message = {
      id: content.id,
      type: 'message',
      role: 'assistant',
      model: content.model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      ...(usage === null ? {} : { usage: { ...messagesInput(usage), output_tokens: 1 } }),
    };
    return {
      head: [named('message_start', { message }), named('ping', {})],
      pieces: [...thought, ...said, ...used],
      tail: [
        named('message_delta', {
          delta: { stop_reason: stopReason[content.finish], stop_sequence: null },
          ...(usage === null ? {} : { usage: { output_tokens: usage.completion } }),
        }),
        named('message_stop', {}),
      ],
    };
  },
  errorBody: (message) => ({ type: 'error', error: { type: 'api_error', message } }),
  errorEvent: (message) => named('error', { error: { type: 'overloaded_error', message } }),
};

/** What is wrong with a block; a result answers its call. */
function blockComplaint(block: Body, unanswered: Set<string>): string | null {
  switch (block.type) {
    case 'text':
      return block.text.trim() === '' ? 'text content blocks must be non-empty' : null;
    case 'thinking':
      return block.signature === '' ? 'thinking without a signature' : null;
    case 'redacted_thinking':
      return null;
    case 'tool_use':
      if (!name.test(block.name) || !name.test(block.id)) return 'tool_use: invalid name or id';
      return typeof block.input === 'object' && block.input !== null && !Array.isArray(block.input)
        ? null
        : 'tool_use.input: Input should be a valid dictionary';
    case 'tool_result':
      return unanswered.delete(block.tool_use_id) ? null : 'tool_result without tool_use';
    case 'image':
    case 'document':
      return block.source?.type === 'base64' ? null : `${block.type}: no source`;
    default:
      return `unknown block ${block.type}`;
  }
}

function resultText(block: Body): string {
  return typeof block.content === 'string'
    ? block.content
    : (block.content ?? []).map((part: Body) => part.text).join('');
}

export function named(type: string, data: object): string {
  return `event: ${type}\n${event({ type, ...data })}`;
}

/** The result of a tool without the marks that say that it is data. */
export function unmarked(text: string): string {
  return /^<(result(?:-\d+)?)>\n(.*)\n<\/\1>$/s.exec(text)?.[2] ?? text;
}
