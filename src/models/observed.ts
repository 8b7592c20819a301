/** Models whose calls somebody counts. */
import type { Clock } from '../kernel/clock.ts';
import { ModelError, type ModelFault, type Models, type Usage } from './model.ts';

/** A call that has ended. */
export interface ObservedCall {
  readonly outcome: 'answered' | ModelFault;
  readonly tokens: Usage;
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
      const end = (outcome: ObservedCall['outcome'], tokens: Usage) =>
        observe({ outcome, tokens, tookMs: clock.monotonic() - began });
      try {
        const answer = await models.call(call);
        end('answered', answer.usage);
        return answer;
      } catch (error) {
        if (error instanceof ModelError) end(error.fault, error.usage);
        throw error;
      }
    },
  };
}
