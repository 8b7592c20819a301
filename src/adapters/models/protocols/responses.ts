/**
 * Responses: OpenAI's protocol for its present models, which refuse tools beside an effort in chat completions. Nothing
 * is stored at the provider: reasoning comes encrypted, and goes back with the calls of tools that it led to.
 */
import { type Json, objectOf } from '../../../kernel/json.ts';
import { isPicture } from '../../../kernel/media-type.ts';
import type { AssistantMessage, ModelCall, UserMessage } from '../model.ts';
import {
  acceptableId,
  acceptableInputText,
  acceptableName,
  boundedId,
  dataUrl,
  partsOfTurn,
  type TurnPart,
} from '../prompt.ts';
import type { Protocol } from '../protocol.ts';
import { bearerOf, outputFormat } from './open-ai.ts';
import { ResponsesReader } from './responses-reader.ts';
import { openAiSchema } from './sent-schemas.ts';

/** Characters of the id of a call; a call of another provider's model may have a longer one. */
const callIdMax = 64;

export const responses: Protocol = {
  name: 'responses',
  pathFor: () => '/responses',
  headersOf: bearerOf,
  bodyOf,
  readerFor: (answer) => new ResponsesReader(answer),
  eventsOf,
};

function bodyOf(call: ModelCall, name: string): Json {
  const { effort, schema, tools } = call;
  const format = outputFormat(schema);
  // It refuses `instructions`.
  const isXai = call.model.startsWith('xai/');
  return {
    model: name,
    instructions: isXai ? undefined : call.system || undefined,
    input: isXai && call.system !== '' ? [systemOf(call), ...inputOf(call)] : inputOf(call),
    max_output_tokens: call.maxOutputTokens,
    temperature: call.temperature,
    reasoning: effort && { effort },
    text: format && { format: { type: 'json_schema', ...format } },
    tools: tools.length === 0 ? undefined : tools.map(toolOf),
    tool_choice: tools.length > 0 && call.mustAnswer ? 'none' : undefined,
    store: false,
    // Models that never reason refuse it.
    include: call.mayReason === false ? undefined : ['reasoning.encrypted_content'],
    stream: true,
  };
}

function systemOf({ system }: ModelCall): Json {
  return { role: 'system', content: system };
}

/** Without `strict` the provider would change the schema of a tool. */
function toolOf({ name, description, parameters }: ModelCall['tools'][number]): Json {
  const schema = openAiSchema(parameters);
  return { type: 'function', name, description, parameters: schema, strict: false };
}

function inputOf({ model, messages }: ModelCall): Json[] {
  // The provider ignores the reasoning of earlier exchanges.
  const exchange = messages.findLastIndex(({ role }) => role === 'user');
  return messages.flatMap((message, i): Json[] => {
    if (message.role === 'user') return [{ role: 'user', content: contentOf(message) }];
    if (message.role === 'assistant') return itemsOf(model, message, i > exchange);
    // Whether it is an error is in the text.
    const call_id = callIdOf(message.callId);
    return [{ type: 'function_call_output', call_id, output: message.text }];
  });
}

function contentOf({ text, contents = [] }: UserMessage): string | Json[] {
  if (contents.length === 0) return text;
  const files = contents.map(
    (file): Json =>
      isPicture(file.mediaType)
        ? { type: 'input_image', image_url: dataUrl(file), detail: 'auto' }
        : { type: 'input_file', filename: file.name, file_data: dataUrl(file) },
  );
  return [...files, { type: 'input_text', text }];
}

/** The items of an answer. The provider refuses reasoning that nothing follows. */
function itemsOf(model: string, message: AssistantMessage, hasReasoning: boolean): Json[] {
  const parts = partsOfTurn(model, message);
  const last = parts.findLastIndex(({ type }) => type !== 'reasoning');
  return parts
    .slice(0, last + 1)
    .filter(({ type }) => hasReasoning || type !== 'reasoning')
    .map(itemOf);
}

function itemOf(part: TurnPart): Json {
  const own = part.signed?.['openai'];
  switch (part.type) {
    case 'text':
      return { role: 'assistant', content: part.text, ...own };
    case 'reasoning':
      return { type: 'reasoning', ...own };
    case 'tool-call': {
      const { id, name, input } = part.call;
      return {
        type: 'function_call',
        call_id: callIdOf(id),
        name: acceptableName(name),
        arguments: acceptableInputText(input),
      };
    }
  }
}

function callIdOf(id: string): string {
  return boundedId(acceptableId(id), callIdMax);
}

/** Each item is read when it is done, and so is the response. */
function eventsOf(document: Json): Json[] {
  const { output, status } = document;
  if (!Array.isArray(output)) return [document];
  const items = output.map((item, output_index) => ({
    type: 'response.output_item.done',
    output_index,
    item: objectOf(item),
  }));
  return [...items, { type: `response.${status ?? 'completed'}`, response: document }];
}
