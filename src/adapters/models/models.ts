/**
 * Models through the AI SDK: one streamed call, without retries.
 *
 * The SDK's providers are called directly (`doStream`), not through its `streamText`, which validates
 * the arguments of tools, writes warnings to the console, keeps every part of a step, and sends each
 * part through a chain of streams. That takes several times the work for a long answer and twice the
 * memory for many concurrent answers. Turns, tools and retries are the work of an agent's loop.
 */
import type { Clock } from '../../kernel/clock.ts';
import { AnswerSoFar, ExcessError } from './answer.ts';
import { connect, optionsOf } from './connect.ts';
import { messageIn } from './error-body.ts';
import { failureOf } from './failure.ts';
import {
  type ModelAnswer,
  type ModelCall,
  ModelError,
  type ModelFault,
  type Models,
  nothingSpent,
} from './model.ts';
import { type Access, accessTo, partsOfModel } from './providers.ts';
import { withReasoning } from './reasoning.ts';
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
      const answer = await this.#makeCall(call);
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

  async #makeCall(call: ModelCall): Promise<ModelAnswer> {
    const { provider, name } = partsOfModel(call.model);
    const access = accessTo(provider, call.settings);
    const { protocol } = access;
    const answer = new AnswerSoFar(protocol, call.onText);
    const { signal, timeoutMs, firstByteTimeoutMs } = call;
    const limits = { ...this.#silence, timeoutMs, firstByteMs: firstByteTimeoutMs };
    const onText = (text: string) => answer.takeText(text);
    const wire = new Wire({ protocol, signal, limits, onText });
    try {
      await exchange(access, name, call, wire, answer);
    } finally {
      wire.close();
    }
    const usage = wire.isBegun ? wire.parser.state.usage : nothingSpent;
    const whole = isWhole(wire) ? answer.whole(call.model) : null;
    if (whole !== null) {
      const { reasoning, isRefusal } = wire.parser.state;
      const finish = isRefusal && whole.finish === 'stop' ? 'refusal' : whole.finish;
      const thought = reasoning === null ? {} : { reasoning: { ...reasoning, model: call.model } };
      return { message: { ...whole.message, ...thought }, finish, usage };
    }
    const seenBytes = answer.seenBytes + Buffer.byteLength(wire.parser.state.reasoning?.text ?? '');
    const failed = { access, name, text: answer.text(), usage, seenBytes };
    throw failureOf(wire.fault ?? { kind: 'malformed', detail: endedEarly }, failed, this.#clock);
  }
}

const endedEarly = 'it ended before it was whole';

/** Runs the exchange. An error is reported to the wire, which keeps the first fault. */
async function exchange(
  access: Access,
  name: string,
  call: ModelCall,
  wire: Wire,
  answer: AnswerSoFar,
): Promise<void> {
  if (wire.fault !== null) return;
  try {
    const model = await connect(access, name, withReasoning(wire.fetch, call));
    const { stream } = await model.doStream(optionsOf(access.protocol, call));
    for await (const part of stream) answer.take(part);
  } catch (error) {
    const detail = detailOf(error);
    if (error instanceof ExcessError) wire.fail({ kind: 'excessive', detail });
    else wire.fail({ kind: wire.isBegun ? 'malformed' : 'impossible', detail });
  }
}

function detailOf(error: unknown): string {
  if (!(error instanceof Error)) return messageIn(error);
  // The message of the SDK's validator quotes the whole event.
  return error.name === 'AI_TypeValidationError'
    ? 'an event is not what the protocol says'
    : error.message;
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
function isWhole(wire: Wire): boolean {
  const fault = wire.fault;
  return (fault === null || lateFaults.has(fault.kind)) && wire.parser.state.isFinished;
}
