import type { QueueOf } from '../api/queue.ts';
import { countText } from '../ui/Time.tsx';
import { atLeastText } from './counts.ts';
import { Later, Oldest } from './Oldest.tsx';

const titles: Record<QueueOf['queue'], string> = {
  'skill-execution': 'Jobs',
  'scheduled-jobs': 'Scheduled jobs',
  webhooks: 'Webhook deliveries',
};

/** Each queue with its slots. */
export function Queues({ queues }: { queues: readonly QueueOf[] }) {
  return (
    <ul className="grid gap-3 md:grid-cols-2 xl:grid-cols-3">
      {queues.map((queue) => (
        <li
          key={queue.queue}
          className="flex min-w-0 flex-col gap-3 rounded-lg border bg-surface px-4 py-3.5 shadow-low"
        >
          <h2 className="text-[13px] font-semibold">{titles[queue.queue]}</h2>
          <dl className="grid grid-cols-3 gap-2 text-xs text-muted">
            <Count name="Waiting" value={atLeastText(queue.waiting, queue.at_least)} />
            <Count name="Running" value={countText(queue.running)} />
            <Count name="Later" value={atLeastText(queue.later, queue.at_least)} />
          </dl>
          {queue.slots && <Slots {...queue.slots} />}
          <p className="text-xs text-muted">
            <Oldest group={queue} />
            <Later group={queue} />
          </p>
        </li>
      ))}
    </ul>
  );
}

function Count({ name, value }: { name: string; value: string }) {
  return (
    <div className="min-w-0">
      <dt>{name}</dt>
      <dd className="text-xl font-semibold tracking-tight text-ink tabular-nums">{value}</dd>
    </div>
  );
}

/** How many slots are taken, as a bar. */
function Slots({ workers, slots, taken }: NonNullable<QueueOf['slots']>) {
  const share = slots === 0 ? 0 : Math.min(1, taken / slots);
  const words = `${countText(taken)} of ${countText(slots)} slots taken`;
  return (
    <div>
      <div className="h-1.5 overflow-hidden rounded-full bg-sunken ring-1 ring-line ring-inset">
        <div
          className={share === 1 ? 'h-full bg-warn' : 'h-full bg-accent'}
          style={{ width: `${share * 100}%` }}
        />
      </div>
      <p className="mt-1 text-xs text-muted tabular-nums">
        {words}, {workers === 1 ? '1 worker process' : `${countText(workers)} worker processes`}
      </p>
    </div>
  );
}
