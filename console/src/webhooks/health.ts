import type { EventType, Webhook } from '../api/webhooks.ts';
import type { Tone } from '../ui/Status.tsx';

export interface Health {
  /** For a badge. */
  readonly label: string;
  readonly tone: Tone;
  /** A sentence or two. */
  readonly words: string;
}

const failures = (n: number) => (n === 1 ? 'One delivery' : `${n} deliveries in a row`);

/** How a webhook does, at a glance and in words. */
export function healthOf(webhook: Webhook): Health {
  const { active, failing, consecutive_failures: n, last_delivery_at } = webhook;
  if (!active) {
    return {
      label: 'inactive',
      tone: 'neutral',
      words:
        n > 0
          ? `It is switched off, after ${failures(n).toLowerCase()} failed. Mend the receiver, then reactivate it. What happens meanwhile is not sent later.`
          : 'It is switched off. What happens meanwhile is not sent later.',
    };
  }
  if (failing) {
    return {
      label: n > 1 ? `failing, ${n} in a row` : 'failing',
      tone: 'bad',
      words: `${failures(n)} used up all retries, and nothing has arrived since. After ten it is switched off.`,
    };
  }
  if (last_delivery_at === null) {
    return {
      label: 'ok',
      tone: 'good',
      words: 'Nothing has been sent yet. Send a test to see whether it arrives.',
    };
  }
  return { label: 'ok', tone: 'good', words: 'What was sent last has arrived.' };
}

export const eventWords: Record<EventType, string> = {
  'skill.completed': 'A run finished',
  'skill.failed': 'A run failed for good, after its retries',
  'agent.error': 'Something is wrong with an agent or its set-up',
  'agent.status_changed': 'An agent was paused or resumed',
  'conversation.created': 'A job began a new conversation',
  'scheduled_job.completed': 'A scheduled run finished',
  'scheduled_job.failed': 'A scheduled run failed for good',
};

/** `whsec_` and 32 random bytes in base64, as Standard Webhooks has them. */
export function newSecret(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(32));
  return `whsec_${btoa(String.fromCharCode(...bytes))}`;
}
