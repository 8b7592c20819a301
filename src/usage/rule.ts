/**
 * The rule of reservations: whether a call may be made, with how long an answer, or has to wait.
 * Pure; what is used and held back is passed in. Whoever reserves what it grants, and uses no more
 * than that, never uses more than a budget has.
 */
import type { UsageOwnerKind } from '../database/tables.ts';
import type { Reservation, UsageOwner } from './reservations.ts';

/** Tokens below which an answer is not worth its call. */
export const outputMin = 16;

/** A budget and what has become of it. All numbers are tokens. */
export interface Standing {
  readonly owner: UsageOwner;
  /** The day, or the month. */
  readonly period: string;
  readonly limit: number;
  /** Known and estimated. */
  readonly used: number;
  /** By calls under way. */
  readonly held: number;
}

/** What an owner is called in sentences. */
const nouns: Record<UsageOwnerKind, string> = {
  agent: 'agent',
  api_key: 'API key',
  scheduled_job: 'scheduled job',
};

/** What becomes of a call that wants `prompt` and `output` tokens, by all budgets that it falls under. */
export function decide(
  { prompt, output }: { prompt: number; output: number },
  standings: readonly Standing[],
): Reservation {
  const usedUp = standings.find(({ used, limit }) => used >= limit);
  if (usedUp !== undefined) return { kind: 'exceeded', message: useOf(usedUp) };
  const needed = prompt + Math.min(output, outputMin);
  // Not even when all that is held back is given back: what was used never gets less.
  const hopeless = standings.find((standing) => unusedOf(standing) < needed);
  if (hopeless !== undefined) {
    const { limit } = hopeless;
    return {
      kind: 'exceeded',
      message: `${useOf(hopeless)}: ${shown(unusedOf(hopeless))} tokens are left of ${shown(limit)}, and the call needs about ${shown(needed)}`,
    };
  }
  const short = standings.filter((standing) => leftOf(standing) < prompt + output);
  if (short.length === 0) return { kind: 'granted', output, reserved: prompt + output };
  const waited = short.find(({ held }) => held > 0);
  if (waited !== undefined) {
    const message = `Waiting for a budget. ${useOf(waited)}; calls under way hold back ${shown(waited.held)}`;
    return { kind: 'wait', message };
  }
  const left = Math.min(...short.map(leftOf));
  return { kind: 'granted', output: left - prompt, reserved: left };
}

/** Tokens that are left when nothing is held back any more. */
function unusedOf({ limit, used }: Standing): number {
  return limit - used;
}

/** Tokens that may still be reserved; below zero where a limit was lowered. */
export function leftOf({ limit, used, held }: Pick<Standing, 'limit' | 'used' | 'held'>): number {
  return limit - used - held;
}

function useOf({ owner, period, used, limit }: Standing): string {
  return `The ${nouns[owner.kind]} ${owner.id} has used ${shown(used)} of its ${shown(limit)} tokens for ${period} (UTC)`;
}

const shown = (tokens: number) => tokens.toLocaleString('en-US');
