/** The models of all providers: one streamed call, without retries. Turns, tools and retries are the work of an agent's loop. */
import type { Clock } from '../../kernel/clock.ts';
import { AnswerSoFar } from './answer.ts';
import { withoutZeros } from './counts.ts';
import { failureOf } from './failure.ts';
import {
  type ModelAnswer,
  type ModelCall,
  ModelError,
  type ModelFault,
  type Models,
  nothingSpent,
} from './model.ts';
import type { AnswerState, Ending } from './protocol.ts';
import type { ProviderRequest } from './provider-request.ts';
import { type Access, accessTo, partsOfModel } from './providers.ts';
import { Wire, type WireFault } from './wire.ts';
import type { SilenceLimits } from './wire-timers.ts';

type OnCall = (call: {
  readonly outcome: 'answered' | ModelFault;
  readonly tookMs: number;
}) => void;

interface ModelsOptions {
  /** A longer silence ends the call. */
  readonly silence: SilenceLimits;
  readonly clock: Clock;
  /** Called when a call has ended, for metrics. */
  readonly onCall?: OnCall;
}

/** The models of all providers. */
export class ProviderModels implements Models {
  readonly #clock: Clock;
  readonly #silence: SilenceLimits;
  readonly #onCall: OnCall;
  /** Models that have refused to be asked for their reasoning, with their addresses. */
  readonly #unreasoning = new Set<string>();

  constructor({ clock, silence, onCall = () => {} }: ModelsOptions) {
    this.#clock = clock;
    this.#silence = silence;
    this.#onCall = onCall;
  }

  async call(call: ModelCall): Promise<ModelAnswer> {
    const startedAt = this.#clock.monotonic();
    const report = (outcome: 'answered' | ModelFault) =>
      this.#onCall({ outcome, tookMs: this.#clock.monotonic() - startedAt });
    try {
      const answer = await this.#ask(call);
      report('answered');
      return answer;
    } catch (error) {
      if (error instanceof ModelError) report(error.fault);
      throw error;
    }
  }

  countUnmade(fault: ModelFault): void {
    this.#onCall({ outcome: fault, tookMs: 0 });
  }

  /**
   * A model that refuses to be asked for its reasoning is asked without, now and later. One that cannot verify the reasoning
   * that is sent back is asked once more without it.
   */
  async #ask(call: ModelCall): Promise<ModelAnswer> {
    const key = `${call.model} ${call.settings?.baseUrl}`;
    const plain = { ...call, mayReason: false };
    const asked = this.#unreasoning.has(key) ? plain : call;
    try {
      return await this.#makeCall(asked);
    } catch (error) {
      if (!(error instanceof ModelError)) throw error;
      if (error.refuses === 'reasoning') return await this.#makeCall(withoutOpaque(asked));
      if (asked.mayReason === false || !refusesReasoning(error)) throw error;
      if (this.#unreasoning.size >= unreasoningMax) this.#unreasoning.clear();
      this.#unreasoning.add(key);
      return await this.#makeCall(plain);
    }
  }

  async #makeCall(call: ModelCall): Promise<ModelAnswer> {
    const { provider, name } = partsOfModel(call.model);
    const access = accessTo(provider, call.settings);
    const { protocol } = access;
    const answer = new AnswerSoFar(call.onText);
    const reader = protocol.readerFor(answer);
    const { state } = reader;
    const { signal, timeoutMs, firstByteTimeoutMs } = call;
    const limits = { ...this.#silence, timeoutMs, firstByteMs: firstByteTimeoutMs };
    const wire = new Wire({ sink: { protocol, reader, answer }, signal, limits });
    try {
      const request = requestOf(access, name, call);
      if ('detail' in request) wire.fail({ kind: 'impossible', detail: request.detail });
      else await wire.exchange(request);
    } finally {
      wire.close();
    }
    const seenBytes = answer.seenBytes + Buffer.byteLength(state.reasoning?.text ?? '');
    const reported = seenBytes > 0 ? withoutZeros(state.usage) : state.usage;
    const usage = wire.isBegun ? reported : nothingSpent;
    if (isWhole(wire.fault, state)) {
      reader.end();
      const { message, ...whole } = answer.whole(call.model, state.ending);
      const { reasoning } = state;
      const thought = reasoning === null ? {} : { reasoning: { ...reasoning, model: call.model } };
      return { ...whole, message: { ...message, ...thought }, usage };
    }
    const failed = { access, name, text: answer.text(), usage, seenBytes };
    throw failureOf(faultOf(wire.fault, state), failed, this.#clock);
  }
}

const endedEarly = 'it ended before it was whole';

/** The request of a call, or why there is none. */
function requestOf(
  { protocol, baseUrl, apiKey }: Access,
  name: string,
  call: ModelCall,
): ProviderRequest | { readonly detail: string } {
  try {
    const body = JSON.stringify(protocol.bodyOf(call, name));
    return {
      url: `${baseUrl}${protocol.pathFor(name)}`,
      headers: protocol.headersOf(apiKey),
      body,
    };
  } catch (error) {
    return { detail: (error as Error).message };
  }
}

const unreasoningMax = 1_000;

/** OpenAI: "Encrypted content is not supported with this model." */
function refusesReasoning({ fault, message }: ModelError): boolean {
  if (fault !== 'refused') return false;
  return /\bencrypted[ _.]content\b.*\b(not support|unsupported)/i.test(message);
}

function withoutOpaque(call: ModelCall): ModelCall {
  const messages = call.messages.map((message) =>
    message.role === 'assistant' ? { ...message, opaque: undefined } : message,
  );
  return { ...call, messages };
}

/** Why an answer is not whole. */
function faultOf(fault: WireFault | null, { givenUp }: AnswerState): WireFault {
  if (givenUp !== null && (fault === null || lateFaults.has(fault.kind))) {
    return { kind: 'failed', message: `it gave the answer up for ${JSON.stringify(givenUp)}` };
  }
  return fault ?? { kind: 'malformed', detail: endedEarly };
}

const lateFaults: ReadonlySet<WireFault['kind']> = new Set([
  'lost',
  'silent',
  'stalled',
  'late',
  'malformed',
  'failed',
]);

/** A fault after the stop reason may lose the usage of an answer, but not the answer. */
function isWhole(
  fault: WireFault | null,
  state: AnswerState,
): state is AnswerState & { ending: Ending } {
  if (state.ending === null || state.givenUp !== null) return false;
  return fault === null || lateFaults.has(fault.kind);
}
