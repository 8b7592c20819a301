import type { Schema } from '../api/client.ts';
import { Status } from './Status.tsx';

type Refusal = NonNullable<Schema<'ScheduledJob'>['refusal']>;

/** Beside a schedule or a trigger that is enabled and would start no job now. */
export const CannotRun = () => <Status value="cannot run" tone="warn" />;

/** The reason and the remedy. */
export function WhyNot({ refusal, noun }: { refusal: Refusal; noun: string }) {
  const isOfKey = refusal.code === 'invalid_api_key' || refusal.code === 'insufficient_scope';
  return (
    <p className="mb-3 text-[13px] leading-relaxed text-warn-text">
      This {noun} starts no job now. {refusal.message}.
      {isOfKey && ` A ${noun} keeps its key: make a new one with another key, and delete this one.`}
    </p>
  );
}
