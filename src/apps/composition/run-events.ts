/** Events from outside, and the runs that wait for them. */

import type { Context } from '../../core/context/context.ts';
import { createRunEvents } from '../../platform/run-events/send.ts';
import type { TellDeps } from '../../platform/run-events/tell.ts';

export function composeRunEvents(
  { database, clock }: Pick<Context, 'database' | 'clock'>,
  { endWaits }: Pick<TellDeps, 'endWaits'>,
) {
  return createRunEvents({ database, clock, endWaits });
}
