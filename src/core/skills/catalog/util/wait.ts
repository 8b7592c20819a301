import { defineSkill } from '../../definition.ts';
import { integer, objectWith } from '../_support/schemas.ts';

const waitMsMax = 300_000;
/** A wait longer than this reports progress at this interval. */
const progressEveryMs = 5_000;

export default defineSkill({
  category: 'util',
  name: 'wait',
  version: 'v1.0',
  displayName: 'Wait',
  description:
    'Waits for up to five minutes, reporting its progress, and ends at once when it is cancelled.',
  parameters: objectWith('all', {
    ms: integer({ minimum: 0, maximum: waitMsMax }, 'Milliseconds to wait.'),
  }),
  output: objectWith('all', {
    waited_ms: { type: 'integer', description: 'Milliseconds that were waited.' },
  }),
  // The timeout leaves some time besides the wait itself.
  timeoutMs: waitMsMax + 10_000,
  examples: [{ input: { ms: 5 }, output: { waited_ms: 5 } }],

  async run({ ms }, ctx) {
    for (let waited = 0; waited < ms; ) {
      const step = Math.min(progressEveryMs, ms - waited);
      await pause(step, ctx.signal);
      waited += step;
      if (ms > progressEveryMs) {
        ctx.progress(waited / ms, `${Math.round(waited / 1000)} of ${Math.round(ms / 1000)} s`);
      }
    }
    return { waited_ms: ms };
  },
});

/** Resolves after `ms`, or rejects with the signal's reason as soon as that aborts. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const abort = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', abort);
      resolve();
    }, ms);
    signal.addEventListener('abort', abort, { once: true });
  });
}
