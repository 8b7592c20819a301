/**
 * Models through the AI SDK: one streamed call, without retries.
 *
 * The SDK's providers are called directly (`doStream`), not through its `streamText`, which validates
 * the arguments of tools, writes warnings to the console, keeps every part of a step, and sends each
 * part through a chain of streams. That takes several times the work for a long answer and twice the
 * memory for many concurrent answers. Turns, tools and retries are the work of an agent's loop.
 */
import { type Clock, systemClock } from '../kernel/clock.ts';
import { type AnswerSoFar, createAnswer, ExcessError } from './answer.ts';
import { connect, optionsOf } from './connect.ts';
import { messageIn } from './error-body.ts';
import { failureOf } from './failure.ts';
import { type ModelCall, ModelError, type Models, nothingSpent } from './model.ts';
import { type Access, accessTo, type ProviderSettings, partsOfModel } from './providers.ts';
import { withReasoning } from './reasoning.ts';
import { openWire, type SilenceLimits, type Wire, type WireFault } from './wire.ts';

/**
 * `settingsOf` returns an organization's settings for a provider, undefined when there are none. A
 * ModelError that it throws is the error of the call. A longer silence than `silence` ends the call.
 */
export function createModels(parts: {
  settingsOf(organizationId: string, provider: string): Promise<ProviderSettings | undefined>;
  silence: SilenceLimits;
  clock?: Clock;
}): Models {
  const { settingsOf, silence, clock = systemClock } = parts;

  async function accessOf(organizationId: string, provider: string): Promise<Access> {
    let settings: ProviderSettings | undefined;
    try {
      settings = await settingsOf(organizationId, provider);
    } catch (error) {
      if (error instanceof ModelError) throw error;
      throw new ModelError('unavailable', `The credentials for ${provider} cannot be read`, {
        cause: error,
      });
    }
    return accessTo(provider, settings);
  }

  return {
    async call(call) {
      const { provider, name } = partsOfModel(call.model);
      const access = await accessOf(call.organizationId, provider);
      const { protocol } = access;
      const answer = createAnswer(protocol, call.onText);
      const { takeText } = answer;
      const wire = openWire({ protocol, signal: call.signal, silence, onText: takeText });
      try {
        await exchange(access, name, call, wire, answer);
      } finally {
        wire.close();
      }
      const fault = wire.fault();
      const usage = wire.isBegun() ? wire.parser.state.usage : nothingSpent;
      const whole = isWhole(wire) ? answer.whole(call.model) : null;
      if (whole !== null) {
        const { reasoning } = wire.parser.state;
        const thought =
          reasoning === null ? {} : { reasoning: { ...reasoning, model: call.model } };
        return { ...whole, message: { ...whole.message, ...thought }, usage };
      }
      const failed = { access, name, text: answer.text(), usage };
      throw failureOf(fault ?? { kind: 'malformed', detail: endedEarly }, failed, clock);
    },
  };
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
  if (wire.fault() !== null) return;
  try {
    const model = await connect(access, name, withReasoning(wire.fetch, call));
    const { stream } = await model.doStream(optionsOf(access.protocol, call));
    for await (const part of stream) answer.take(part);
  } catch (error) {
    const detail = detailOf(error);
    if (error instanceof ExcessError) wire.fail({ kind: 'excessive', detail });
    else wire.fail({ kind: wire.isBegun() ? 'malformed' : 'impossible', detail });
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
  'malformed',
  'failed',
]);

/** A fault after the stop reason may lose the usage of an answer, but not the answer. */
function isWhole(wire: Wire): boolean {
  const fault = wire.fault();
  return (fault === null || lateFaults.has(fault.kind)) && wire.parser.state.isFinished;
}
