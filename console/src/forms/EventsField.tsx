import { webhookEvents } from '../api/webhook-events.ts';
import type { EventType } from '../api/webhooks.ts';
import { useMissingToRead } from '../webhooks/event-scopes.ts';

const all = Object.keys(webhookEvents) as EventType[];

/** The event types of a webhook. */
export function EventsField({
  value,
  onValue,
  isOfAll,
  error,
}: {
  value: readonly EventType[];
  onValue: (events: EventType[]) => void;
  /** Whether it is a webhook for all agents: only these get events of none in particular. */
  isOfAll: boolean;
  error?: string | undefined;
}) {
  const missingToRead = useMissingToRead();
  const missing = (event: EventType) => {
    const [scope] = missingToRead([event]);
    if (scope !== undefined) return `needs the scope ${scope}`;
    return webhookEvents[event].isOfNoAgent && !isOfAll ? 'for all agents only' : undefined;
  };
  return (
    <fieldset className="min-w-0">
      <legend className="mb-1.5 text-[13px] font-medium">Events</legend>
      <div className="flex flex-col divide-y rounded-md border">
        {all.map((event) => (
          <label
            key={event}
            className="flex cursor-pointer items-start gap-2.5 px-3 py-2 text-[13px] hover:bg-hover"
          >
            <input
              type="checkbox"
              className="mt-0.5 size-4 shrink-0 accent-accent"
              checked={value.includes(event)}
              // What is chosen already can be taken away.
              disabled={missing(event) !== undefined && !value.includes(event)}
              onChange={({ target }) =>
                onValue(all.filter((one) => (one === event ? target.checked : value.includes(one))))
              }
            />
            <span className="flex min-w-0 flex-wrap gap-x-3">
              <code className="font-mono text-xs leading-5 sm:w-44">{event}</code>
              <span className="text-muted">
                {[webhookEvents[event].label, missing(event)].filter(Boolean).join('; ')}
              </span>
            </span>
          </label>
        ))}
      </div>
      {error !== undefined && (
        <p role="alert" className="mt-1.5 text-xs text-bad-text">
          {error}
        </p>
      )}
    </fieldset>
  );
}
