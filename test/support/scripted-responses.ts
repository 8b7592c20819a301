/** Responses (OpenAI), as its public documentation has them. Nothing is stored, as if `store` were always false. */
import {
  type Body,
  type Content,
  cut,
  name,
  named,
  type Protocol,
  type ReportedUsage,
  unmarked,
} from './scripted-protocols.ts';

export const responses: Protocol = {
  name: 'responses',
  path: '/v1/responses',
  dialogue: (body) => body.input,
  system: (body) => body.instructions ?? '',
  toolResults(body) {
    const last = body.input.findLastIndex((item: Body) => item.type !== 'function_call_output');
    return body.input.slice(last + 1).map((item: Body) => unmarked(item.output));
  },
  toolNames: (body) => (body.tools ?? []).map((tool: Body) => tool.name),
  complaint(body) {
    const { model, input, tools = [], max_output_tokens: max } = body;
    if (typeof model !== 'string') return "Missing required parameter: 'model'.";
    if (!Array.isArray(input) || input.length === 0) return "Missing required parameter: 'input'.";
    if (body.store !== false) return 'This organization stores nothing: `store` has to be false.';
    if (max !== undefined && max < 16) return "Invalid 'max_output_tokens': integer below 16.";
    if (body.messages !== undefined) return "Unsupported parameter: 'messages'.";
    for (const tool of tools) {
      if (!name.test(tool.name)) return "Invalid 'tools[0].name'.";
      if (tool.strict !== false) return "Invalid schema for function: 'additionalProperties'.";
    }
    return inputComplaint(input);
  },
  whole: (content) => responseOf(content, itemsOf(content)),
  events(content, size) {
    const { finish } = content;
    const start = { ...responseOf(content, []), status: 'in_progress', usage: null };
    let sequence = 0;
    const event = (type: string, data: object) =>
      named(type, { sequence_number: sequence++, ...data });
    const head = [
      event('response.created', { response: start }),
      event('response.in_progress', { response: start }),
    ];
    const pieces = itemsOf(content).flatMap((item, index) => piecesOf(item, index, size, event));
    const isWhole = finish === 'stop' || finish === 'tool-calls';
    const response = responseOf(content, itemsOf(content));
    return {
      head,
      pieces,
      tail: [event(isWhole ? 'response.completed' : 'response.incomplete', { response })],
    };
  },
  errorBody: (message) => ({ error: { message, type: 'server_error', param: null, code: null } }),
  errorEvent: (message) => named('error', { code: 'server_error', message, param: null }),
};

/** What is wrong with the items of an input; null when nothing is. */
function inputComplaint(input: readonly Body[]): string | null {
  const unanswered = new Set<string>();
  for (const [i, item] of input.entries()) {
    switch (item.type ?? 'message') {
      case 'message':
        if (unanswered.size > 0)
          return `No tool output found for function call ${[...unanswered]}.`;
        if (typeof item.content !== 'string' && !Array.isArray(item.content)) {
          return `Invalid type for 'input[${i}].content'.`;
        }
        break;
      case 'reasoning': {
        if (typeof item.encrypted_content !== 'string') {
          return `Item with id '${item.id}' not found. Items are not persisted when \`store\` is set to false.`;
        }
        if (!Array.isArray(item.summary))
          return `Missing required parameter: 'input[${i}].summary'.`;
        const next = input[i + 1];
        const isFollowed = next?.type !== undefined || next?.role === 'assistant';
        if (!isFollowed || next.type === 'function_call_output') {
          return `Item '${item.id}' of type 'reasoning' was provided without its required following item.`;
        }
        break;
      }
      case 'function_call':
        if (!name.test(item.name)) return `Invalid 'input[${i}].name'.`;
        if (typeof item.arguments !== 'string') return `Invalid type for 'input[${i}].arguments'.`;
        if (!name.test(item.call_id)) return `Invalid 'input[${i}].call_id'.`;
        if (unanswered.has(item.call_id)) return `Duplicate item found with id ${item.call_id}.`;
        unanswered.add(item.call_id);
        break;
      case 'function_call_output':
        if (!unanswered.delete(item.call_id)) {
          return `No tool call found for function call output with call_id ${item.call_id}.`;
        }
        if (typeof item.output !== 'string') return `Invalid type for 'input[${i}].output'.`;
        break;
      default:
        return `Invalid value: '${item.type}'.`;
    }
  }
  return unanswered.size > 0 ? `No tool output found for function call ${[...unanswered]}.` : null;
}

function itemsOf({ id, thinking, text, isRefusal, toolCalls, finish }: Content): Body[] {
  const status = finish === 'length' ? 'incomplete' : 'completed';
  const part = isRefusal
    ? { type: 'refusal', refusal: text }
    : { type: 'output_text', text, annotations: [], logprobs: [] };
  return [
    ...(thinking === undefined
      ? []
      : [
          {
            type: 'reasoning',
            id: `rs_${id}`,
            summary: [],
            encrypted_content: thinking.signature,
          },
        ]),
    ...(text === ''
      ? []
      : [{ type: 'message', id: `msg_${id}`, status, role: 'assistant', content: [part] }]),
    ...toolCalls.map((call) => ({
      type: 'function_call',
      id: `fc_${call.id}`,
      status,
      call_id: call.id,
      name: call.name,
      arguments: call.input,
    })),
  ];
}

/** The events of an item; its first and last ones go with its first and last delta. */
function piecesOf(
  item: Body,
  output_index: number,
  size: number,
  event: (type: string, data: object) => string,
): string[] {
  const at = { item_id: item.id, output_index };
  const done = (...events: string[]) => [
    ...events,
    event('response.output_item.done', { output_index, item }),
  ];
  const added = (begun: object) =>
    event('response.output_item.added', { output_index, item: { ...item, ...begun } });
  if (item.type === 'reasoning') {
    return joined([added({ encrypted_content: '' })], [], done());
  }
  if (item.type === 'function_call') {
    const head = added({ arguments: '', status: 'in_progress' });
    const deltas = cut(item.arguments, size).map((delta) =>
      event('response.function_call_arguments.delta', { ...at, delta }),
    );
    const { arguments: input } = item;
    const last = event('response.function_call_arguments.done', { ...at, arguments: input });
    return joined([head], deltas, done(last));
  }
  const [part] = item.content;
  const kind = part.type === 'refusal' ? 'refusal' : 'output_text';
  const place = { ...at, content_index: 0 };
  const empty = part.type === 'refusal' ? { ...part, refusal: '' } : { ...part, text: '' };
  const head = [
    added({ content: [], status: 'in_progress' }),
    event('response.content_part.added', { ...place, part: empty }),
  ];
  const text = part.text ?? part.refusal;
  const deltas = cut(text, size).map((delta) =>
    event(`response.${kind}.delta`, { ...place, delta }),
  );
  const whole = part.type === 'refusal' ? { refusal: text } : { text };
  const last = event(`response.${kind}.done`, { ...place, ...whole });
  return joined(head, deltas, done(last, event('response.content_part.done', { ...place, part })));
}

function joined(head: string[], deltas: string[], tail: string[]): string[] {
  const pieces = deltas.length === 0 ? [''] : [...deltas];
  pieces[0] = head.join('') + pieces[0];
  pieces[pieces.length - 1] += tail.join('');
  return pieces;
}

const reasons: Partial<Record<Content['finish'], string>> = {
  length: 'max_output_tokens',
  'content-filter': 'content_filter',
};

function responseOf(content: Content, output: readonly Body[]): Body {
  const { id, model, finish, usage } = content;
  const reason = reasons[finish];
  return {
    id: `resp_${id}`,
    object: 'response',
    created_at: 1_700_000_000,
    status: reason === undefined ? 'completed' : 'incomplete',
    error: null,
    incomplete_details: reason === undefined ? null : { reason },
    model,
    output,
    store: false,
    usage: usage === null ? null : usageOf(usage),
  };
}

function usageOf({ prompt, completion, cacheRead, cacheWrite, reasoning }: ReportedUsage): Body {
  const details = cacheRead !== undefined || cacheWrite !== undefined;
  return {
    input_tokens: prompt,
    ...(details
      ? { input_tokens_details: { cached_tokens: cacheRead, cache_write_tokens: cacheWrite } }
      : {}),
    output_tokens: completion,
    ...(reasoning === undefined ? {} : { output_tokens_details: { reasoning_tokens: reasoning } }),
    total_tokens: prompt + completion,
  };
}
