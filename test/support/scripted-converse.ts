/** Converse (Amazon Bedrock), as its public documentation has `ConverseStream`. The model is in the address. */
import { crc32 } from 'node:zlib';
import {
  type Body,
  type Content,
  cut,
  name,
  type Protocol,
  type ReportedUsage,
  unmarked,
} from './scripted-protocols.ts';

const stopReasons: Record<Content['finish'], string> = {
  stop: 'end_turn',
  'tool-calls': 'tool_use',
  length: 'max_tokens',
  'content-filter': 'content_filtered',
};

export const converse: Protocol = {
  name: 'converse',
  path: '/model/',
  contentType: 'application/vnd.amazon.eventstream',
  dialogue: (body) => body.messages,
  system: (body) => (body.system ?? []).map((block: Body) => block.text ?? '').join(''),
  toolResults(body) {
    const results = body.messages.at(-1).content.filter((block: Body) => block.toolResult);
    return results.map(({ toolResult: { content } }: Body) => unmarked(content[0].text));
  },
  toolNames: (body) => (body.toolConfig?.tools ?? []).map((tool: Body) => tool.toolSpec.name),
  complaint(body) {
    const { messages, toolConfig } = body;
    if (!Array.isArray(messages) || messages[0]?.role !== 'user') {
      return 'A conversation must start with a user message.';
    }
    if (!converse.toolNames(body).every((one) => name.test(one))) return 'toolSpec.name is invalid';
    let role = 'assistant';
    let unanswered = new Set<string>();
    for (const message of messages) {
      if (message.role === role) return 'Roles must alternate between "user" and "assistant".';
      role = message.role;
      if (message.content.length === 0) return 'The content field is empty.';
      for (const { text, toolResult } of message.content) {
        if (text !== undefined && text.trim() === '') return 'The text field is blank.';
        if (toolResult === undefined) continue;
        if (!unanswered.delete(toolResult.toolUseId)) return 'A toolResult without its toolUse.';
      }
      if (unanswered.size > 0) return 'A toolUse without its toolResult.';
      const uses = message.content.flatMap(({ toolUse }: Body) => (toolUse ? [toolUse] : []));
      if (uses.length > 0 && toolConfig === undefined)
        return 'The toolConfig field must be defined.';
      for (const use of uses) {
        if (!name.test(use.name) || !name.test(use.toolUseId)) return 'A toolUse is invalid.';
        if (typeof use.input !== 'object' || Array.isArray(use.input)) return 'input is no object';
      }
      unanswered = new Set(uses.map((use: Body) => use.toolUseId));
    }
    return unanswered.size > 0 ? 'A toolUse without its toolResult.' : null;
  },
  whole: ({ thinking, text, toolCalls, finish, usage }) => ({
    output: {
      message: {
        role: 'assistant',
        content: [
          ...(thinking === undefined ? [] : [{ reasoningContent: { reasoningText: thinking } }]),
          ...(text === '' ? [] : [{ text }]),
          ...toolCalls.map(({ id, name: called, input }) => ({
            toolUse: { toolUseId: id, name: called, input: JSON.parse(input) },
          })),
        ],
      },
    },
    stopReason: stopReasons[finish],
    ...(usage === null ? {} : { usage: usageOf(usage) }),
  }),
  events({ thinking, text, toolCalls, finish, usage }, size) {
    let index = -1;
    const block = (start: object | null, deltas: readonly object[]): Buffer[] => {
      index += 1;
      const contentBlockIndex = index;
      return [
        ...(start === null ? [] : [frame('contentBlockStart', { contentBlockIndex, start })]),
        ...deltas.map((delta) => frame('contentBlockDelta', { contentBlockIndex, delta })),
        frame('contentBlockStop', { contentBlockIndex }),
      ];
    };
    const thought =
      thinking === undefined
        ? []
        : block(null, [
            ...cut(thinking.text, size).map((part) => ({ reasoningContent: { text: part } })),
            { reasoningContent: { signature: thinking.signature } },
          ]);
    const said =
      text === ''
        ? []
        : block(
            null,
            cut(text, size).map((part) => ({ text: part })),
          );
    const used = toolCalls.flatMap(({ id, name: called, input }) =>
      block(
        { toolUse: { toolUseId: id, name: called } },
        cut(input, size).map((part) => ({ toolUse: { input: part } })),
      ),
    );
    return {
      head: [frame('messageStart', { role: 'assistant' })],
      pieces: [...thought, ...said, ...used],
      tail: [
        frame('messageStop', { stopReason: stopReasons[finish] }),
        frame('metadata', {
          metrics: { latencyMs: 1 },
          ...(usage === null ? {} : { usage: usageOf(usage) }),
        }),
      ],
    };
  },
  errorBody: (message) => ({ message }),
  errorEvent: (message) => frame('modelStreamErrorException', { message }, 'exception'),
};

function usageOf({ prompt, completion, cacheRead, cacheWrite }: ReportedUsage) {
  return {
    inputTokens: prompt - (cacheRead ?? 0) - (cacheWrite ?? 0),
    outputTokens: completion,
    totalTokens: prompt + completion,
    ...(cacheRead === undefined ? {} : { cacheReadInputTokens: cacheRead }),
    ...(cacheWrite === undefined ? {} : { cacheWriteInputTokens: cacheWrite }),
  };
}

/** One frame of the event stream of AWS. */
export function frame(
  type: string,
  payload: object,
  kind: 'event' | 'exception' = 'event',
): Buffer {
  const headers = Buffer.concat([
    header(':message-type', kind),
    header(kind === 'event' ? ':event-type' : ':exception-type', type),
    header(':content-type', 'application/json'),
  ]);
  // Bedrock pads each event to hide its length.
  const body = Buffer.from(JSON.stringify({ ...payload, p: 'abcdefgh' }));
  const lengths = Buffer.alloc(8);
  lengths.writeUInt32BE(16 + headers.length + body.length, 0);
  lengths.writeUInt32BE(headers.length, 4);
  const checked = Buffer.concat([lengths, checksumOf(lengths), headers, body]);
  return Buffer.concat([checked, checksumOf(checked)]);
}

function header(key: string, value: string): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(value.length);
  return Buffer.concat([
    Buffer.from([key.length]),
    Buffer.from(key),
    Buffer.from([7]),
    length,
    Buffer.from(value),
  ]);
}

function checksumOf(bytes: Buffer): Buffer {
  const checksum = Buffer.alloc(4);
  checksum.writeUInt32BE(crc32(bytes));
  return checksum;
}
