/** Gemini: Google's `generateContent`. */
import { type Json, objectOf } from '../../../kernel/json.ts';
import type { AssistantMessage, DialogueMessage, FileContent, ModelCall } from '../model.ts';
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

/** Results are in a content of their own: beside anything else newer models take them for a turn of the model. */
function contentsOf({ model, messages, thinking }: ModelCall): Json[] {
  const isNewer = thinking === 'adaptive';
  const data = dataOf(messages, isNewer);
  const ids: Ids = new Map();
  const turns = turnsOf(messages, (message) =>
    message.role === 'assistant'
      ? partsOf(model, message, isNewer, ids)
      : inputPartsOf(message, data.get(message) ?? [], ids),
  );
  return turns.flatMap(({ role, content }) => {
    if (role === 'assistant') return [{ role: 'model', parts: content }];
    const results = content.filter(isResult);
    const others = content.filter((part) => !isResult(part));
    return [results, others].flatMap((parts) => (parts.length === 0 ? [] : [{ role, parts }]));
  });
}

const isResult = (part: Json) => part['functionResponse'] !== undefined;

/** The ids that Gemini gave to calls, by those that they have: it need not take others. */
type Ids = Map<string, unknown>;

/** The files of each message. Those of tools are in a message after the results: newer models take them within the last result. */
function dataOf(
  messages: readonly DialogueMessage[],
  isNewer: boolean,
): ReadonlyMap<DialogueMessage, Json[]> {
  const data = new Map<DialogueMessage, Json[]>();
  let before: DialogueMessage | undefined;
  for (const message of messages) {
    if (message.role === 'user' && message.contents !== undefined) {
      const isOfTools = isNewer && message.files === undefined;
      const holder = isOfTools && before?.role === 'tool' ? before : message;
      data.set(holder, message.contents.map(inlineData));
    }
    before = message;
  }
  return data;
}

const inlineData = ({ mediaType, base64 }: FileContent): Json => ({
  inlineData: { mimeType: mediaType, data: base64 },
});

function inputPartsOf(
  message: Exclude<DialogueMessage, AssistantMessage>,
  data: Json[],
  ids: Ids,
): Json[] {
  if (message.role === 'user') return [...data, { text: message.text }];
  const response = message.isError ? { error: message.text } : { result: message.text };
  const parts = data.length === 0 ? undefined : data;
  const id = ids.get(message.callId);
  return [{ functionResponse: { id, name: acceptableName(message.name), response, parts } }];
}

/** Gemini 3 and later refuse calls without a signature; this text is for those of other models. */
const otherModels = 'skip_thought_signature_validator';

/** Of the calls of a turn the first is signed. */
function partsOf(
  model: string,
  message: AssistantMessage,
  needsSignature: boolean,
  ids: Ids,
): Json[] {
  const turn = partsOfTurn(model, message).map((part) => ({
    part,
    own: objectOf(part.signed?.['google']),
  }));
  const isSigned = turn.some(
    ({ part, own }) => part.type === 'tool-call' && own?.['thoughtSignature'],
  );
  let missing = needsSignature && !isSigned ? otherModels : undefined;
  return turn.flatMap(({ part, own }): Json[] => {
    const thoughtSignature = own?.['thoughtSignature'];
    if (part.type === 'text') return [{ text: part.text, thoughtSignature }];
    if (part.type === 'reasoning') return [];
    const { name, input } = part.call;
    const id = own?.['id'];
    ids.set(part.call.id, id);
    const functionCall = { id, name: acceptableName(name), args: acceptableInput(input) };
    const signature = thoughtSignature ?? missing;
    missing = undefined;
    return [{ functionCall, thoughtSignature: signature }];
  });
}
