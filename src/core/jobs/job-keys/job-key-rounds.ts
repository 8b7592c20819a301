/** The rounds in which the requests of one transaction are accepted. */
import { skillKey } from '../../skills/registry.ts';
import { keyNameOf } from './job-keys.store.ts';
import type { JobKey } from './job-keys.ts';

/**
 * The requests, by their places, in rounds in which no key comes twice: a later request of a key is decided beside the job
 * of the earlier one.
 */
export function keyBatches(
  requests: readonly {
    readonly organizationId: string;
    readonly skill: { category: string; version: string; name: string };
    readonly jobKey?: JobKey | undefined;
  }[],
): number[][] {
  const seen = new Map<string, number>();
  const rounds: number[][] = [];
  requests.forEach(({ organizationId, skill, jobKey }, i) => {
    let round = 0;
    if (jobKey !== undefined) {
      const { category, version, name } = skill;
      const keyName = keyNameOf({
        organization_id: organizationId,
        skill: skillKey(category, version, name),
        job_key: jobKey.key,
      });
      round = seen.get(keyName) ?? 0;
      seen.set(keyName, round + 1);
    }
    rounds[round] ??= [];
    rounds[round]?.push(i);
  });
  return rounds;
}
