/** Cron expressions in requests: validation, the stored form, and previews. */
import { timestamp } from '../kernel/clock.ts';
import { invalid } from '../kernel/errors.ts';
import { type Cron, CronError, nextMatch, normalForm, parseCron } from './cron.ts';

/** The parsed expression, or `400 validation_error`. */
export function cronOf(expression: string): Cron {
  try {
    return parseCron(expression);
  } catch (error) {
    if (error instanceof CronError) throw invalid('cron_expression', error.message);
    throw error;
  }
}

export function cronColumns(expression: string) {
  return { cron_expression: expression, cron_key: normalForm(expression) };
}

/** The next `count` matches of an expression. */
export function nextRunsOf(expression: string, count: number, now: number) {
  const cron = cronOf(expression);
  const nextRuns: string[] = [];
  for (let at = now; nextRuns.length < count; ) {
    at = nextMatch(cron, at);
    nextRuns.push(timestamp(at));
  }
  return { cron_expression: expression, next_runs: nextRuns };
}
