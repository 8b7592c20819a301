/**
 * The verbs of `src/platform/webhooks` on a real database and a real queue, with time and the receivers in
 * the test's hand. Nothing happens by itself: a test dispatches and sweeps, and waits for quiet.
 */

import type { Database } from '../../src/adapters/database/database.ts';
import { SigningSecrets } from '../../src/adapters/database/signing-secrets.ts';
import { MemoryQueue } from '../../src/adapters/queue/memory.ts';
import { composeAgents } from '../../src/apps/composition/agents.ts';
import { composeWebhooks } from '../../src/apps/composition/webhooks.ts';
import type { Agents } from '../../src/core/agents/agents.ts';
import { ApiKeys } from '../../src/core/api-keys/api-keys.ts';
import { readConfig } from '../../src/core/config/config.ts';
import { type EventType, events, type NewEvent } from '../../src/core/events/events.ts';
import { appendEvents } from '../../src/core/events/outbox.ts';
import type { Jobs } from '../../src/core/jobs/jobs.ts';
import { Cipher } from '../../src/kernel/encryption.ts';
import { createLogger } from '../../src/kernel/log.ts';
import type { DeliveryRow } from '../../src/platform/webhooks/deliveries.store.ts';
import {
  type Answer,
  resultOf,
  Sender,
  type SendRequest,
} from '../../src/platform/webhooks/send.ts';
import type { Observation } from '../../src/platform/webhooks/settle.ts';
import type { NewWebhook } from '../../src/platform/webhooks/webhooks.schemas.ts';
import { contextOf } from './context.ts';
import type { Engine } from './databases.ts';
import { type ManualClock, manualClock } from './manual-clock.ts';
import { untilReadable } from './outbox.ts';
import { waitFor } from './wait-for.ts';
import { anyWriter } from './writers.ts';

/** The specification's: 30 s, 2 min, 10 min, 1 h, 6 h. */
export const retryDelaysMs = [30_000, 120_000, 600_000, 3_600_000, 21_600_000];

const answered = (status: number): Answer => ({ status, error: null, response: `says ${status}` });
export const ok = answered(200);
export const down = answered(503);
export const gone = answered(410);
export const silent: Answer = { status: null, error: 'It did not answer', response: null };

type ComposedWebhooks = ReturnType<typeof composeWebhooks>;

/** A process: what it sends goes to `receivers` instead of the network. */
export interface WebhookProcess extends ComposedWebhooks {
  readonly database: Database;
  /** Makes it end without settling what it has sent: as if it were killed. */
  stopsAnswering(): void;
}

export interface Sent extends SendRequest {
  /** As the headers name it. */
  readonly deliveryId: string;
  readonly at: number;
}

export interface WebhooksWorld extends Omit<WebhookProcess, 'deliveries'> {
  /** The verbs of deliveries. */
  readonly log: WebhookProcess['deliveries'];
  readonly clock: ManualClock;
  readonly agents: Agents;
  /** Every request, in order. */
  readonly sent: Sent[];
  readonly observed: Observation[];
  /** What receivers answer from now on. */
  answer(how: Answer | ((request: Sent) => Answer | Promise<Answer>)): void;
  /** A webhook of the default agent for `skill.completed`, or what `fields` say; its id. */
  webhook(fields?: Partial<NewWebhook>, organizationId?: string): Promise<string>;
  /** Makes an event happen, by default a `skill.completed` of the default agent; its type. */
  happen(type?: EventType, where?: { organizationId?: string; agentId?: string }): Promise<void>;
  /** Dispatches, and waits until nothing is due. */
  deliver(): Promise<void>;
  /** Lets time pass, sweeps, and waits until nothing is due. */
  pass(ms: number): Promise<void>;
  /** Waits until nothing is due and nothing under way. */
  quiet(): Promise<void>;
  /** A further process on the same database. */
  process(encryptedBy?: number | null): Promise<WebhookProcess>;
  deliveries(webhookId?: string): Promise<DeliveryRow[]>;
  /** The webhook as it is shown. */
  shown(webhookId: string): ReturnType<ComposedWebhooks['webhooks']['get']>;
}

/**
 * `caps`: the limits on the number of webhooks; none when they are left out. `key` tells one encryption key from another;
 * null is no key. `canAllOpen`: see `SigningSecrets`.
 */
export async function webhooksWorld(
  engine: Engine,
  {
    caps = { ofOrganization: Number.POSITIVE_INFINITY, ofAgent: Number.POSITIVE_INFINITY },
    key = 1,
    canAllOpen = () => true,
    database: given,
  }: {
    caps?: { ofOrganization: number; ofAgent: number };
    key?: number | null;
    canAllOpen?: () => boolean;
    database?: Database;
  } = {},
): Promise<WebhooksWorld> {
  const clock = manualClock();
  const log = createLogger('silent');
  const place = given === undefined ? await engine.emptiedPlace() : await engine.place();
  const database = given ?? (await place.open());
  const { agents } = composeAgents(contextOf({ database, clock }));
  const apiKeys = new ApiKeys(contextOf({ database, clock }), agents);
  for (const organization_id of ['default', 'other']) {
    await apiKeys.issue({ client_name: 'a test', scopes: ['*'], organization_id });
  }
  const sent: Sent[] = [];
  const observed: Observation[] = [];
  let respond: (request: Sent) => Answer | Promise<Answer> = () => ok;

  function start(on: Database, writer: string, encryptedBy = key): WebhookProcess {
    const queue = new MemoryQueue(log);
    let isKilled = false;
    class TestSender extends Sender {
      override async send(request: SendRequest) {
        const deliveryId = request.headers['x-service-delivery'] ?? '';
        const one = { ...request, deliveryId, at: clock.now() };
        sent.push(one);
        const answer = await respond(one);
        if (isKilled) await new Promise(() => {});
        return resultOf(answer, request.signal.aborted);
      }
    }
    const config = {
      ...readConfig({}),
      webhookRetryDelays: retryDelaysMs,
      webhookTimeoutMs: 10_000,
      webhooksMax: caps.ofOrganization,
      agentWebhooksMax: caps.ofAgent,
    };
    const cipher = encryptedBy === null ? null : new Cipher(Buffer.alloc(32, encryptedBy));
    const outgoing = composeWebhooks(
      contextOf({ config, database: on, queue, clock, log, writer }),
      { agents, secrets: new SigningSecrets(on, cipher, canAllOpen), jobs: {} as Jobs },
      {
        times: {},
        sender: new TestSender({ allowed: [], timeoutMs: 10_000 }),
        observe: (observation) => void observed.push(observation),
      },
    );
    queue.consume('webhooks', ({ id }) => outgoing.deliverer.handleHint(id));
    return {
      ...outgoing,
      database: on,
      stopsAnswering() {
        isKilled = true;
      },
    };
  }

  const first = start(database, 'first');
  const { webhooks, dispatcher, recovery } = first;
  let processes = 1;

  async function quiet(): Promise<void> {
    await waitFor(
      async () => {
        const left = await database.read.kysely
          .selectFrom('webhook_deliveries')
          .select('id')
          .where('due_at', 'is not', null)
          .where((eb) => eb.or([eb('status', '=', 'delivering'), eb('due_at', '<=', clock.now())]))
          .execute();
        return left.length === 0;
      },
      { describe: 'no delivery is due or under way' },
    );
  }

  return {
    ...first,
    log: first.deliveries,
    clock,
    agents,
    sent,
    observed,
    quiet,

    answer(how) {
      respond = typeof how === 'function' ? how : () => how;
    },

    async webhook(fields = {}, organizationId = 'default') {
      const { id } = await webhooks.create(anyWriter(organizationId), {
        agent_id: 'default',
        url: 'https://receiver.example/hook',
        events: ['skill.completed'],
        ...fields,
      });
      return id;
    },

    async happen(type = 'skill.completed', where = {}) {
      const { organizationId = 'default', agentId = 'default' } = where;
      const event = { type, organizationId, agentId, data: events[type].sample } as NewEvent;
      await database.write((tx) => appendEvents(tx, [event], clock.now()));
    },

    async deliver() {
      await untilReadable(database);
      await dispatcher.dispatch();
      await quiet();
    },

    async pass(ms) {
      clock.advance(ms);
      await recovery.sweep();
      await quiet();
    },

    async process(encryptedBy = key) {
      processes += 1;
      const on = engine.name === 'SQLite' ? database : await place.open();
      return start(on, `process ${processes}`, encryptedBy);
    },

    deliveries: (webhookId) => {
      const query = database.read.kysely.selectFrom('webhook_deliveries').selectAll().orderBy('id');
      return (
        webhookId === undefined ? query : query.where('webhook_id', '=', webhookId)
      ).execute();
    },

    shown: (webhookId) => webhooks.get('default', webhookId),
  };
}

/** The counts of deliveries agree with the rows, and every row with itself. */
export async function countsOf(database: Database) {
  const rows = await database.read.kysely
    .selectFrom('webhook_deliveries')
    .select(['webhook_id', 'status'])
    .execute();
  const counts = await database.read.kysely
    .selectFrom('webhook_delivery_counts')
    .selectAll()
    .execute();
  const sum = (found: readonly { webhook_id: string; status: string; count?: number }[]) => {
    const sums = new Map<string, number>();
    for (const { webhook_id, status, count = 1 } of found) {
      const key = `${webhook_id} ${status}`;
      sums.set(key, (sums.get(key) ?? 0) + Number(count));
    }
    return Object.fromEntries([...sums].filter(([, n]) => n !== 0).sort());
  };
  return { counted: sum(counts), there: sum(rows) };
}
