/** Runs that a test unloads for certain: they wait for an event, which comes once they are unloaded. */
import { expect } from 'vitest';
import type { Tenant } from './tenant.ts';
import { waitFor } from './wait-for.ts';

interface ListedStep {
  readonly step: number;
  readonly waits_for: { readonly event?: string } | null;
}

/** Sends the event `go` to a job so many times, each time when its run waits for it and is unloaded. */
export async function resumeUnloaded(
  { get, post, jobIn }: Pick<Tenant, 'get' | 'post' | 'jobIn'>,
  jobId: string,
  times = 1,
): Promise<void> {
  let last = 0;
  for (let i = 0; i < times; i += 1) {
    const { step } = await waitFor(
      async () => {
        const { body } = await get(`/api/jobs/${jobId}/steps?status=waiting`);
        return (body.data as ListedStep[]).find(
          ({ step, waits_for }) => step > last && waits_for?.event === 'go',
        );
      },
      { describe: `job ${jobId} waits for its event ${i + 1} of ${times}` },
    );
    last = step;
    // The wait is on record: from now on this status means that the run is not loaded.
    await jobIn(jobId, 'waiting');
    const { body } = await post('/api/events', { event: 'go', job_id: jobId, data: null });
    expect(body.delivered).toBe(1);
  }
}
