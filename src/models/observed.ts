/** Models whose calls somebody counts. */
import type { Clock } from '../kernel/clock.ts';
import { ModelError, type ModelFault, type Models } from './model.ts';

/** A call that has ended. */
export interface ObservedCall {
  readonly outcome: 'answered' | ModelFault;
  readonly tookMs: number;
}

/** The same models; `observe` hears of each call when it has ended. */
export function observed(
  models: Models,
  clock: Clock,
  observe: (call: ObservedCall) => void,
): Models {
  return {
    async call(call) {
      const began = clock.monotonic();
      const end = (outcome: ObservedCall['outcome']) =>
        observe({ outcome, tookMs: clock.monotonic() - began });
      try {
        const answer = await models.call(call);
        end('answered');
        return answer;
      } catch (error) {
        if (error instanceof ModelError) end(error.fault);
        throw error;
      }
    },
  };
}
