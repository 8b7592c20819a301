import type { Schema } from '../api/client.ts';
import { countText } from '../ui/Time.tsx';

/** The limits of a skill in words: `2 runs at a time per user`. */
export function limitTexts({
  concurrency = [],
  rate = [],
  slows_down = false,
}: Pick<Schema<'Skill'>, 'concurrency' | 'rate' | 'slows_down'>): readonly string[] {
  return [
    ...concurrency.map(({ limit, per }) => `${runs(limit)} at a time${ofWhom(per)}`),
    ...rate.map(
      ({ limit, per_seconds, per }) =>
        `${runs(limit)} in ${per_seconds === 1 ? 'a second' : `${countText(per_seconds)} seconds`}${ofWhom(per)}`,
    ),
    ...(slows_down ? ['a pause after a refusal by a service'] : []),
  ];
}

const runs = (limit: number) => (limit === 1 ? '1 run' : `${countText(limit)} runs`);
const ofWhom = (per: string) => (per === 'platform' ? '' : ` per ${per}`);
