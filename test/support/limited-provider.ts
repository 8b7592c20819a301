/** A provider that takes so many calls a second, and refuses the others. */
import { expect } from 'vitest';
import type { Script } from './scripted-provider.ts';
import type { Tenant } from './tenant.ts';
import { waitFor } from './wait-for.ts';

export function limitedTo(perSecond: number, answer: Script) {
  const served: number[] = [];
  let refusals = 0;
  const script: Script = (request) => {
    const now = performance.now();
    while (served[0] !== undefined && served[0] <= now - 1_000) served.shift();
    if (served.length < perSecond) {
      served.push(now);
      return answer(request);
    }
    refusals += 1;
    return { fault: { status: 429 } };
  };
  return { script, refusals: () => refusals };
}

/** Waits for the ends of jobs, and expects that all completed in their first attempt, with few refusals; `MEASURE=1` prints. */
export async function expectServed(
  limit: ReturnType<typeof limitedTo>,
  { get }: Pick<Tenant, 'get'>,
  begin: () => Promise<readonly string[]>,
): Promise<void> {
  const began = performance.now();
  const ids = await begin();
  const jobs = await Promise.all(
    ids.map((id) =>
      waitFor(
        async () => {
          const { body } = await get(`/api/jobs/${id}`);
          return body.finished_at === null ? null : body;
        },
        { deadlineMs: 110_000, everyMs: 500, describe: `the end of ${id}` },
      ),
    ),
  );
  const seconds = (performance.now() - began) / 1_000;
  if (process.env['MEASURE']) console.log(`${seconds} s, ${limit.refusals()} refusals`);
  expect(jobs.filter(({ status }) => status !== 'completed')).toEqual([]);
  expect(new Set(jobs.map(({ attempt }) => attempt))).toEqual(new Set([1]));
  expect(limit.refusals()).toBeLessThan(40);
}
