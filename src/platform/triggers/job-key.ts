/** Triggers whose jobs have a key: of calls with one key not each makes a job of its own (docs/triggers.md). */

import type { Expressions } from '../../adapters/sandbox/expressions.ts';
import {
  type JobKey,
  type JobKeyMode,
  jobKeyMax,
  jobKeyOf,
} from '../../core/jobs/job-keys/job-keys.ts';
import { evaluateKey, withField } from './evaluate-key.ts';
import type { MappingContext } from './mapping-context.ts';
import type { TriggerRow } from './triggers.store.ts';

const field = 'job_key.mapping';
const names = {
  key: field,
  debounceSeconds: 'job_key.debounce_seconds',
  debounceMaxSeconds: 'job_key.debounce_max_seconds',
};

/** What a trigger has of the key of its jobs. */
interface JobKeySettings {
  readonly mapping: string;
  readonly mode?: JobKeyMode;
  readonly debounce_seconds?: number;
  readonly debounce_max_seconds?: number;
}

/** The settings of a trigger, null where its jobs have no key. */
export function jobKeySettings({ job_key }: Pick<TriggerRow, 'job_key'>): JobKeySettings | null {
  return job_key === null ? null : (JSON.parse(job_key) as JobKeySettings);
}

/** Throws `400` where the settings do not fit together, or the mapping cannot be read. */
export async function requireJobKey(mappings: Expressions, trigger: TriggerRow): Promise<void> {
  const settings = jobKeySettings(trigger);
  if (settings === null) return;
  keyFrom(settings, 'any');
  await withField(field, mappings.check(trigger.organization_id, settings.mapping));
}

/** The key of the job of a call, undefined where the trigger has none; throws `400` where the mapping gives none. */
export async function jobKeyOfCall(
  mappings: Expressions,
  trigger: TriggerRow,
  context: MappingContext,
): Promise<JobKey | undefined> {
  const settings = jobKeySettings(trigger);
  if (settings === null) return undefined;
  const ofKey = { mapping: settings.mapping, field, max: jobKeyMax };
  const key = await evaluateKey(mappings, trigger, ofKey, context);
  return keyFrom(settings, key);
}

function keyFrom(settings: JobKeySettings, key: string): JobKey | undefined {
  const { mode, debounce_seconds, debounce_max_seconds } = settings;
  const given = {
    ...{ key, mode },
    debounceSeconds: debounce_seconds,
    debounceMaxSeconds: debounce_max_seconds,
  };
  return jobKeyOf(given, names);
}
