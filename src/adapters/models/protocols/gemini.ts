/** Gemini: Google's `generateContent`. */
import { type Json, objectOf } from '../../../kernel/json.ts';
import type { AssistantMessage, DialogueMessage, ModelCall } from '../model.ts';
import { acceptableInput, acceptableName, partsOfTurn, turnsOf } from '../prompt.ts';
import type { Protocol } from '../protocol.ts';
import { GeminiReader } from './gemini-reader.ts';
import { thoughtsOf, threeLevels } from './messages-settings.ts';
import { isObjectSchema } from './sent-schemas.ts';

export const gemini: Protocol = {
  name: 'gemini',
  pathFor: (name) => `/models/${encodeURIComponent(name)}:streamGenerateContent?alt=sse`,
  headersOf: (apiKey): Record<string, string> =>
    apiKey === null ? {} : { 'x-goog-api-key': apiKey },
  bodyOf,
  readerFor: (answer) => new GeminiReader(answer),
  // A whole answer has the form of a chunk.
  eventsOf: (document) => [document],
};

function bodyOf(call: ModelCall): Json {
  const { schema, tools } = call;
  const isHeld = schema !== undefined && isObjectSchema(schema);
  return {
    systemInstruction: call.system === '' ? undefined : { parts: [{ text: call.system }] },
    contents: contentsOf(call),
    tools: tools.length === 0 ? undefined : [{ functionDeclarations: tools.map(declarationOf) }],
    toolConfig:
      tools.length > 0 && call.mustAnswer ? { functionCallingConfig: { mode: 'NONE' } } : undefined,
    generationConfig: {
      maxOutputTokens: call.maxOutputTokens,
      temperature: call.temperature,
      thinkingConfig: thinkingOf(call),
      // Beside tools it would be refused.
      responseMimeType: isHeld && tools.length === 0 ? 'application/json' : undefined,
      responseJsonSchema: isHeld && tools.length === 0 ? schema : undefined,
    },
  };
}

function declarationOf({ name, description, parameters }: ModelCall['tools'][number]): Json {
  return { name, description, parametersJsonSchema: parameters };
}

/** It always thinks. */
const alwaysThinks = /^gemini\/gemini-2\.5-pro/;

function thinkingOf({ model, effort, thinking, maxOutputTokens }: ModelCall): Json | undefined {
  if (effort === undefined) return undefined;
  if (thinking === 'adaptive') return { thinkingLevel: threeLevels[effort] };
  const thinkingBudget = effort === 'none' ? 0 : thoughtsOf(effort, maxOutputTokens);
  return thinkingBudget === 0 && alwaysThinks.test(model) ? undefined : { thinkingBudget };
}

function contentsOf({ model, messages, thinking }: ModelCall): Json[] {
  const turns = turnsOf(messages, (message) =>
    message.role === 'assistant'
      ? partsOf(model, message, thinking === 'adaptive')
      : inputPartsOf(message),
  );
  return turns.map(({ role, content }) => ({
    role: role === 'assistant' ? 'model' : role,
    parts: content,
  }));
}

function inputPartsOf(message: Exclude<DialogueMessage, AssistantMessage>): Json[] {
  if (message.role === 'user') {
    const files = (message.contents ?? []).map(({ mediaType, base64 }) => ({
      inlineData: { mimeType: mediaType, data: base64 },
    }));
    return [...files, { text: message.text }];
  }
  const response = message.isError ? { error: message.text } : { result: message.text };
  return [
    { functionResponse: { id: message.callId, name: acceptableName(message.name), response } },
  ];
}

/** Gemini 3 and later refuse calls without a signature; this text is for those of other models. */
const otherModels = 'skip_thought_signature_validator';

/** Of the calls of a turn the first is signed. */
function partsOf(model: string, message: AssistantMessage, needsSignature: boolean): Json[] {
  const turn = partsOfTurn(model, message);
  const isSigned = turn.some(({ type, signed }) => type === 'tool-call' && signed !== undefined);
  let missing = needsSignature && !isSigned ? otherModels : undefined;
  return turn.flatMap((part): Json[] => {
    const thoughtSignature = objectOf(part.signed?.['google'])?.['thoughtSignature'];
    if (part.type === 'text') return [{ text: part.text, thoughtSignature }];
    if (part.type === 'reasoning') return [];
    const { id, name, input } = part.call;
    const functionCall = { id, name: acceptableName(name), args: acceptableInput(input) };
    const signature = thoughtSignature ?? missing;
    missing = undefined;
    return [{ functionCall, thoughtSignature: signature }];
  });
}
