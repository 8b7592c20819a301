/** Models whose calls are measured: outcome and duration of each, for metrics. */
import type { Clock } from '../kernel/clock.ts';
import { ModelError, type ModelFault, type Models } from './model.ts';

/** The measurement of a call that has ended. */
export interface MeasuredCall {
  readonly outcome: 'answered' | ModelFault;
  readonly tookMs: number;
}

/** The same models, which report each call to `onCall` when it has ended. */
export function meteredModels(
  models: Models,
  clock: Clock,
  onCall: (call: MeasuredCall) => void,
): Models {
  return {
    async call(call) {
      const startedAt = clock.monotonic();
      const report = (outcome: MeasuredCall['outcome']) =>
        onCall({ outcome, tookMs: clock.monotonic() - startedAt });
      try {
        const answer = await models.call(call);
        report('answered');
        return answer;
      } catch (error) {
        if (error instanceof ModelError) report(error.fault);
        throw error;
      }
    },
  };
}
