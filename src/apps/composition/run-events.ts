/** Events from outside, and the runs that wait for them. */
import { createRunEvents } from '../../platform/run-events/send.ts';
import type { TellDeps } from '../../platform/run-events/tell.ts';
import type { Foundation } from './parts.ts';

export function composeRunEvents(
  { database, clock }: Pick<Foundation, 'database' | 'clock'>,
  { endWaits }: Pick<TellDeps, 'endWaits'>,
) {
  return createRunEvents({ database, clock, endWaits });
}
