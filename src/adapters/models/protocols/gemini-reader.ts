/** Reads the chunks of Gemini's answers. */
import { randomUUID } from 'node:crypto';
import { type Json, objectOf } from '../../../kernel/json.ts';
import type { AnswerSoFar } from '../answer.ts';
import { countIn, largerOf, withParts } from '../counts.ts';
import { messageIn } from '../error-body.ts';
import {
  type AnswerReader,
  type AnswerState,
  type Ending,
  nothingRead,
  ProtocolError,
  textIn,
} from '../protocol.ts';

const endings: ReadonlyMap<unknown, Ending> = new Map<unknown, Ending>([
  ['STOP', 'stop'],
  ['MAX_TOKENS', 'length'],
  ['SAFETY', 'content-filter'],
  ['RECITATION', 'content-filter'],
  ['LANGUAGE', 'content-filter'],
  ['BLOCKLIST', 'content-filter'],
  ['PROHIBITED_CONTENT', 'content-filter'],
  ['SPII', 'content-filter'],
  ['IMAGE_SAFETY', 'content-filter'],
  ['IMAGE_PROHIBITED_CONTENT', 'content-filter'],
  ['IMAGE_RECITATION', 'content-filter'],
  ['FINISH_REASON_UNSPECIFIED', 'other'],
]);

export class GeminiReader implements AnswerReader {
  readonly state: AnswerState = nothingRead();
  readonly #answer: AnswerSoFar;

  constructor(answer: AnswerSoFar) {
    this.#answer = answer;
  }

  take(chunk: Json): string | null {
    this.#addUsage(objectOf(chunk['usageMetadata']));
    if (chunk['error']) return messageIn(chunk['error']);
    // The prompt was refused: there is no answer.
    if (objectOf(chunk['promptFeedback'])?.['blockReason']) this.state.ending = 'content-filter';
    const { candidates } = chunk;
    if (!Array.isArray(candidates) || candidates.length === 0) return null;
    const candidate = objectOf(candidates[0]);
    if (candidate === null) throw new ProtocolError();
    const parts = objectOf(candidate['content'])?.['parts'];
    for (const part of Array.isArray(parts) ? parts : []) this.#takePart(objectOf(part));
    const reason = candidate['finishReason'];
    if (typeof reason === 'string') this.#finish(reason);
    return null;
  }

  end(): void {}

  /** All other reasons, such as `OTHER` and `MALFORMED_FUNCTION_CALL`, are of answers that were not finished. */
  #finish(reason: string): void {
    const ending = endings.get(reason);
    if (ending === undefined) this.state.givenUp = reason;
    this.state.ending = ending ?? 'other';
  }

  #takePart(part: Json | null): void {
    if (part === null) throw new ProtocolError();
    const { text, thought, functionCall, inlineData, thoughtSignature: signature } = part;
    const own = typeof signature === 'string' ? { thoughtSignature: signature } : {};
    this.#answer.spendReasoning(own.thoughtSignature ?? '');
    const call = objectOf(functionCall);
    if (call !== null) this.#takeCall(call, own);
    else if (thought === true) this.#answer.spendReasoning(textIn(text));
    else if (objectOf(inlineData) !== null) {
      this.state.isBegun = true;
      this.#answer.takePicture(textIn(objectOf(inlineData)?.['data']));
    } else if (textIn(text) !== '') {
      this.state.isBegun = true;
      this.#answer.beginText(own.thoughtSignature === undefined ? undefined : { google: own });
      this.#answer.takeText(textIn(text));
    }
  }

  #takeCall({ id, name, args }: Json, signature: Json): void {
    this.state.isBegun = true;
    this.#answer.beginCall();
    const input = typeof args === 'string' ? args : JSON.stringify(args ?? {});
    this.#answer.spendToolInput(input);
    // Not every model names its calls.
    const own = textIn(id) === '' ? signature : { ...signature, id };
    this.#answer.takeCall({
      id: textIn(id) || `call_${randomUUID().slice(0, 18)}`,
      name: textIn(name),
      input,
      signed: Object.keys(own).length === 0 ? undefined : { google: own },
    });
  }

  /** Thoughts are counted beside the answer, results of Google's own tools beside the prompt. */
  #addUsage(reported: Json | null): void {
    if (reported === null) return;
    const before = this.state.usage;
    const thoughts = countIn(reported, 'thoughtsTokenCount');
    const written = countIn(reported, 'candidatesTokenCount');
    const prompt = countIn(reported, 'promptTokenCount');
    const sum = (a: number | null, b: number | null) => (a === null ? b : a + (b ?? 0));
    const counts = {
      prompt: largerOf(
        before.prompt,
        prompt === null ? null : sum(prompt, countIn(reported, 'toolUsePromptTokenCount')),
      ),
      completion: largerOf(before.completion, sum(written, thoughts)),
    };
    this.state.usage = withParts(counts, before, {
      cacheRead: countIn(reported, 'cachedContentTokenCount'),
      cacheWrite: null,
      reasoning: thoughts,
    });
  }
}
