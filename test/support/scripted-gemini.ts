/** Gemini (Google), as its public documentation has `streamGenerateContent`. The model is in the address. */
import {
  type Body,
  type Content,
  cut,
  event,
  name,
  type Protocol,
  type ReportedUsage,
  unmarked,
} from './scripted-protocols.ts';

const finishes: Record<Content['finish'], string> = {
  stop: 'STOP',
  'tool-calls': 'STOP',
  length: 'MAX_TOKENS',
  'content-filter': 'SAFETY',
};

export const gemini: Protocol = {
  name: 'gemini',
  path: '/v1beta/models/',
  dialogue: (body) => body.contents,
  system: (body) => body.systemInstruction?.parts[0].text ?? '',
  toolResults(body) {
    const last = body.contents.findLastIndex(({ role }: Body) => role === 'model');
    const parts = body.contents.slice(last + 1).flatMap((content: Body) => content.parts);
    const results = parts.filter((part: Body) => part.functionResponse);
    return results.map(({ functionResponse: { response } }: Body) =>
      unmarked(response.result ?? response.error),
    );
  },
  toolNames: (body) =>
    (body.tools ?? []).flatMap(({ functionDeclarations }: Body) =>
      functionDeclarations.map((tool: Body) => tool.name),
    ),
  complaint(body) {
    if (!Array.isArray(body.contents) || body.contents.length === 0) return 'contents is empty';
    if (!gemini.toolNames(body).every((one) => name.test(one))) return 'Invalid function name.';
    if (body.tools !== undefined && body.generationConfig.responseMimeType !== undefined) {
      return "Function calling with a response mime type: 'application/json' is unsupported";
    }
    let calls = 0;
    for (const { role, parts } of body.contents) {
      if (role !== 'user' && role !== 'model') return 'Please use a valid role: user, model.';
      if (parts.length === 0) return 'contents.parts must not be empty.';
      const answered = parts.filter((part: Body) => part.functionResponse).length;
      if (answered > 0 && answered < parts.length) {
        return 'Requests ending with a model turn are not supported.';
      }
      if (answered !== calls) return 'the number of function response parts is not that of calls';
      calls = parts.filter((part: Body) => part.functionCall).length;
      for (const { functionCall: call } of parts) {
        if (call === undefined) continue;
        if (!name.test(call.name)) return 'Invalid function name.';
        if (typeof call.args !== 'object' || Array.isArray(call.args)) return 'Invalid args.';
      }
    }
    return calls > 0 ? 'calls without responses' : null;
  },
  whole: (content) =>
    chunkOf(
      [
        ...(content.thinking === undefined ? [] : [{ text: content.thinking.text, thought: true }]),
        ...(content.text === '' ? [] : [{ text: content.text }]),
        ...callsOf(content),
      ],
      content.finish,
      content.usage,
    ),
  events(content, size) {
    const thoughts = cut(content.thinking?.text ?? '', size);
    return {
      head: [],
      pieces: [
        ...thoughts.map((text) => event(chunkOf([{ text, thought: true }]))),
        ...cut(content.text, size).map((text) => event(chunkOf([{ text }]))),
        ...callsOf(content).map((call) => event(chunkOf([call]))),
      ],
      tail: [event(chunkOf([{ text: '' }], content.finish, content.usage))],
    };
  },
  errorBody: (message) => ({ error: { code: 500, message, status: 'INTERNAL' } }),
  errorEvent: (message) => event({ error: { code: 500, message, status: 'INTERNAL' } }),
};

/** The first call of an answer that was thought about is signed. */
function callsOf({ toolCalls, thinking }: Content): Body[] {
  return toolCalls.map(({ id, name: called, input }, i) => ({
    functionCall: { id, name: called, args: argsOf(input) },
    ...(i === 0 && thinking !== undefined ? { thoughtSignature: thinking.signature } : {}),
  }));
}

/** Its calls cannot be other than objects. */
function argsOf(input: string): Body {
  try {
    const args = JSON.parse(input);
    return Array.isArray(args) ? {} : args;
  } catch {
    return {};
  }
}

function chunkOf(parts: Body[], finish?: Content['finish'], usage?: ReportedUsage | null): Body {
  return {
    candidates: [
      {
        content: { role: 'model', parts },
        index: 0,
        ...(finish === undefined ? {} : { finishReason: finishes[finish] }),
      },
    ],
    ...(usage == null ? {} : { usageMetadata: usageOf(usage) }),
  };
}

function usageOf({ prompt, completion, cacheRead, reasoning = 0 }: ReportedUsage): Body {
  return {
    promptTokenCount: prompt,
    candidatesTokenCount: completion - reasoning,
    ...(reasoning > 0 ? { thoughtsTokenCount: reasoning } : {}),
    ...(cacheRead === undefined ? {} : { cachedContentTokenCount: cacheRead }),
    totalTokenCount: prompt + completion,
  };
}
