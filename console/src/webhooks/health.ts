import type { Webhook, WebhookDelivery } from '../api/webhooks.ts';
import type { Tone } from '../ui/Status.tsx';

export interface Health {
  /** For a badge. */
  readonly label: string;
  readonly tone: Tone;
  /** A sentence or two. */
  readonly words: string;
}

const failures = (n: number) => (n === 1 ? 'One delivery' : `${n} deliveries in a row`);

/** How a webhook does; `latest` are its newest deliveries, where they are known. */
export function healthOf(webhook: Webhook, latest: readonly WebhookDelivery[] = []): Health {
  const { active, failing, consecutive_failures: n, last_delivery_at } = webhook;
  const missed = 'Events meanwhile are not sent later.';
  if (!active) {
    const why = n > 0 ? `, after ${failures(n).toLowerCase()} failed` : '';
    return {
      label: 'disabled',
      tone: 'neutral',
      words: `It is disabled${why}. ${missed}`,
    };
  }
  if (failing) {
    return {
      label: n > 1 ? `failing, ${n} in a row` : 'failing',
      tone: 'bad',
      // After it was enabled again, the count starts at zero, and it is failing until a delivery succeeds.
      words:
        n === 0
          ? 'It was enabled again after failures, and no delivery has succeeded since.'
          : `${failures(n)} used up all retries, and no delivery has succeeded since.`,
    };
  }
  const waiting = latest.filter(({ status, attempts }) => status === 'pending' && attempts.length);
  if (waiting.length > 0) {
    const error = waiting[0]?.attempts.at(-1)?.error;
    return {
      label: 'retrying',
      tone: 'warn',
      words: `${waiting.length} of the last ${latest.length} deliveries failed and are retried${error ? `: ${error}` : ''}.`,
    };
  }
  if (last_delivery_at === null) {
    return {
      label: 'untried',
      tone: 'neutral',
      words: 'No deliveries yet. Send a test to check the receiver.',
    };
  }
  return { label: 'ok', tone: 'good', words: 'Deliveries succeed.' };
}

/** `whsec_` and 32 random bytes in base64, as Standard Webhooks has them. */
export function newSecret(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(32));
  return `whsec_${btoa(String.fromCharCode(...bytes))}`;
}
