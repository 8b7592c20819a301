/** Triggers on every database (docs/decisions/triggers.md). */

import { createHash } from 'node:crypto';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Database } from '../../src/adapters/database/database.ts';
import { SigningSecrets } from '../../src/adapters/database/signing-secrets.ts';
import { MemoryQueue } from '../../src/adapters/queue/memory.ts';
import { Expressions } from '../../src/adapters/sandbox/expressions.ts';
import { composeAgents } from '../../src/apps/composition/agents.ts';
import { ApiKeys } from '../../src/core/api-keys/api-keys.ts';
import { Conversations } from '../../src/core/conversations/conversations.ts';
import type { LoadedSkills } from '../../src/core/executors/loaded-skills.ts';
import { Files } from '../../src/core/files/files.ts';
import { Acceptor } from '../../src/core/jobs/accept.ts';
import { WaitEnds } from '../../src/core/jobs/end-waits.ts';
import { Execution } from '../../src/core/jobs/execute.ts';
import { Places } from '../../src/core/jobs/gates/places.ts';
import { RunningJobs } from '../../src/core/jobs/runs/running-jobs.ts';
import type { Settler } from '../../src/core/jobs/settle.ts';
import { Admission } from '../../src/core/jobs/turns/admission.ts';
import { openUnconfirmedJobClaims } from '../../src/core/jobs/turns/unconfirmed-claims.ts';
import { SkillRegistry } from '../../src/core/skills/registry.ts';
import type { Caller } from '../../src/kernel/caller.ts';
import { Cipher } from '../../src/kernel/encryption.ts';
import { createLogger } from '../../src/kernel/log.ts';
import { RunEvents } from '../../src/platform/run-events/run-events.ts';
import { type Call, TriggerReceiver } from '../../src/platform/triggers/receive.ts';
import { requireActive } from '../../src/platform/triggers/refusals.ts';
import type { NewTrigger } from '../../src/platform/triggers/triggers.schemas.ts';
import { Triggers } from '../../src/platform/triggers/triggers.ts';
import { contextOf } from '../support/context.ts';
import { engines } from '../support/databases.ts';
import { type ManualClock, manualClock } from '../support/manual-clock.ts';
import { recordEvents } from '../support/outbox.ts';
import { anyWriter } from '../support/writers.ts';

const second = 1_000;
const minute = 60 * second;
const page = { limit: 50, offset: 0 };
const unknownId = '0191f3b0-0000-7000-8000-000000000000';
const fields: NewTrigger = {
  agent_id: 'default',
  name: 'Pushes',
  skill_category: 'test',
  skill_name: 'echo',
};
const skill = (name: string) => ({
  category: 'test',
  name,
  version: 'v1.0',
  displayName: name,
  description: '',
  parameters: { type: 'object' },
  output: {},
});

/** One process: its verbs on a database. */
async function processOn(database: Database, clock: ManualClock) {
  const { agents } = composeAgents(contextOf({ database, clock }));
  const apiKeys = new ApiKeys(contextOf({ database, clock }), agents);
  const skills = new SkillRegistry(contextOf({ database, clock }));
  await skills.register([
    skill('echo'),
    { ...skill('vault'), requiredScopes: ['vault'] },
    skill('other'),
    { ...skill('echo'), version: 'v2.0' },
  ]);
  const queue = new MemoryQueue(createLogger('silent'));
  const context = contextOf({ database, queue, clock });
  const running = new RunningJobs(context);
  const waitEnds = new WaitEnds(context, running);
  const unconfirmed = openUnconfirmedJobClaims(context, {} as Settler, running, 1);
  const places = new Places(context, skills, running, new Map(), agents.limits);
  const worker = {
    turns: new Map(),
    loadedSkills: { canRun: () => true } as unknown as LoadedSkills,
    claimedBy: 1,
  };
  const admission = new Admission(context, { skills, apiKeys, unconfirmed, places }, worker);
  const acceptor = new Acceptor(context, admission, {} as Settler, new Map());
  const files = new Files(context, null);
  const conversations = new Conversations(contextOf({ database }), files);
  const execution = new Execution(context, { skills, agents, conversations, acceptor, files });
  const secrets = new SigningSecrets(database, new Cipher(Buffer.alloc(32, 1)), () => true);
  const runEvents = new RunEvents(context, waitEnds);
  const mappings = new Expressions();
  const triggers = new Triggers(context, { agents, apiKeys, skills, secrets, mappings });
  const receiver = new TriggerReceiver(context, {
    apiKeys,
    secrets,
    execution,
    runEvents,
    mappings,
  });
  onTestFinished(async () => {
    await mappings.stop();
    await queue.close();
  });
  return {
    agents,
    apiKeys,
    skills,
    triggers,
    receiver,
    async newCaller(organization_id = 'default', scopes = ['*']): Promise<Caller> {
      const key = await apiKeys.issue({ client_name: 'a client', scopes, organization_id });
      return apiKeys.verify(key.plaintext_key);
    },
    /** What becomes of a call: the job's id, or the code of the refusal. */
    async call(token: string, more: Partial<Call> = {}): Promise<string> {
      try {
        const trigger = await triggers.byToken(token);
        requireActive(trigger);
        const caller = await receiver.callerOf(trigger);
        const received = await receiver.receive(trigger, caller, {
          headers: {},
          bytes: Buffer.alloc(0),
          query: {},
          idempotencyKey: undefined,
          signedKey: undefined,
          ...more,
        });
        return received.job === null ? received.eventId : received.job.id;
      } catch (error) {
        return (error as { code: string }).code;
      }
    },
  };
}

async function errorsIn(database: Database) {
  const rows = await database.read.kysely
    .selectFrom('events')
    .select('data')
    .where('type', '=', 'agent.error')
    .orderBy('seq')
    .execute();
  return rows.map(({ data }) => JSON.parse(data).code as string);
}

describe.each(await engines())('on $name', (engine) => {
  /** Two processes that share a database; on SQLite two sets of verbs in one. */
  async function world() {
    const clock = manualClock();
    const place = await engine.emptiedPlace();
    const database = await place.open();
    await recordEvents(database);
    const other = engine.name === 'SQLite' ? database : await place.open();
    const here = await processOn(database, clock);
    const caller = await here.newCaller();
    return { ...here, clock, database, caller, elsewhere: await processOn(other, clock) };
  }

  test('a trigger is created with the given fields, and defaults for the others', async () => {
    const { triggers, caller, clock, database } = await world();
    const now = new Date(clock.now()).toISOString();

    const { token, ...made } = await triggers.create(caller, fields);
    const input = { b: [1, '😀'] };
    const said = { ...fields, input, mapping: '{"a": body}', rate_limit: 5, active: false };
    const full = await triggers.create(caller, { ...said, signing_secret: 'x'.repeat(16) });

    expect(made).toEqual({
      ...fields,
      id: expect.any(String),
      skill_version: 'v1.0',
      input: {},
      mapping: null,
      event: null,
      job_key: null,
      priority: null,
      rate_limit: 60,
      has_signing_secret: false,
      active: true,
      created_at: now,
      updated_at: now,
    });
    expect(await triggers.get('default', made.id)).toEqual(made);
    expect(await triggers.get('default', full.id)).toMatchObject({
      ...said,
      has_signing_secret: true,
    });
    const rows = await database.read.kysely.selectFrom('agent_triggers').selectAll().execute();
    expect(JSON.stringify(rows)).not.toContain(token);
    expect(rows.map((row) => row.token_hash)).toContain(
      createHash('sha256').update(token).digest('hex'),
    );
    expect(rows.every((row) => row.api_key_id === caller.keyId)).toBe(true);
  });

  test('triggers are listed newest first, page by page, of one organization', async () => {
    const { triggers, caller, newCaller } = await world();
    const acme = await newCaller('acme');
    for (const name of ['a', 'b', 'c']) await triggers.create(caller, { ...fields, name });
    await triggers.create(acme, { ...fields, name: 'theirs' });
    const names = async (limit: number, offset: number) => {
      const { data: listed, total } = await triggers.list('default', { limit, offset });
      return [...listed.map(({ name }) => name), total];
    };

    expect(await names(50, 0)).toEqual(['c', 'b', 'a', 3]);
    expect(await names(1, 1)).toEqual(['b', 3]);
    expect(await names(50, 3)).toEqual([3]);
    expect((await triggers.list('nobody', page)).total).toBe(0);
  });

  test('a trigger of another organization behaves as one that does not exist', async () => {
    const { triggers, caller, newCaller } = await world();
    const { id, token: _, ...made } = await triggers.create(caller, fields);
    const acme = await newCaller('acme');
    const refused = { code: 'not_found', message: 'Trigger not found' };

    for (const one of [id, unknownId, 'no id']) {
      await expect(triggers.get('acme', one)).rejects.toMatchObject(refused);
      await expect(triggers.admitChange(acme, one)).rejects.toMatchObject(refused);
      await expect(triggers.update(acme, one, { name: 'x' })).rejects.toMatchObject(refused);
      await expect(triggers.remove('acme', one)).rejects.toMatchObject(refused);
    }
    expect(await triggers.get('default', id)).toEqual({ id, ...made });
  });

  test('a change applies to the given fields; an empty change changes nothing; what it runs moves it to the key', async () => {
    const { triggers, caller, clock, newCaller, database } = await world();
    const { id, token: _, ...made } = await triggers.create(caller, { ...fields, mapping: '1' });
    const colleague = await newCaller();
    clock.advance(second);

    expect(await triggers.update(colleague, id, {})).toEqual({ id, ...made });
    const changed = await triggers.update(colleague, id, { mapping: null, input: { a: 1 } });

    expect(changed).toEqual({
      ...{ id, ...made },
      ...{ mapping: null, input: { a: 1 }, updated_at: new Date(clock.now()).toISOString() },
    });
    const row = await database.read.kysely
      .selectFrom('agent_triggers')
      .select('api_key_id')
      .executeTakeFirst();
    expect(row?.api_key_id).toBe(colleague.keyId);
  });

  test('a change needs the scopes of the skill before and after it', async () => {
    const { triggers, caller, newCaller } = await world();
    const narrow = await newCaller('default', ['test']);
    const { id } = await triggers.create(caller, fields);
    const refused = { code: 'insufficient_scope' };

    await expect(triggers.update(narrow, id, { skill_name: 'vault' })).rejects.toMatchObject(
      refused,
    );
    expect(await triggers.update(narrow, id, { name: 'x' })).toMatchObject({ name: 'x' });
    await triggers.update(caller, id, { skill_name: 'vault' });
    await expect(triggers.update(narrow, id, { skill_name: 'echo' })).rejects.toMatchObject(
      refused,
    );
  });

  test('a skill that only the key of the change may run works from then on', async () => {
    const { triggers, caller, newCaller, call } = await world();
    const maker = await newCaller('default', ['test']);
    const { id, token } = await triggers.create(maker, fields);

    await triggers.update(caller, id, { skill_name: 'vault' });
    expect(await call(token)).toHaveLength(36);
  });

  test('of two changes at once that together name no skill one is refused', async () => {
    const { triggers, caller, elsewhere } = await world();

    for (let round = 0; round < 5; round++) {
      const { id } = await triggers.create(caller, fields);
      const [name, version] = await Promise.allSettled([
        triggers.update(caller, id, { skill_name: 'other' }),
        elsewhere.triggers.update(caller, id, { skill_version: 'v2.0' }),
      ]);

      expect([name.status, version.status].sort()).toEqual(['fulfilled', 'rejected']);
      for (const change of [name, version]) {
        if (change.status === 'fulfilled') continue;
        expect(change.reason).toMatchObject({ code: 'skill_not_found' });
      }
    }
  });

  test('a deactivation, deletion or change applies here at once, in other processes within a second', async () => {
    const { triggers, caller, clock, call, elsewhere } = await world();
    const { id, token } = await triggers.create(caller, fields);
    expect(await call(token)).toHaveLength(36);
    expect(await elsewhere.call(token)).toHaveLength(36);

    await triggers.update(caller, id, { active: false });
    expect(await call(token)).toBe('not_found');
    clock.advance(second);
    expect(await elsewhere.call(token)).toBe('not_found');

    await triggers.update(caller, id, { active: true });
    expect(await call(token)).toHaveLength(36);
    expect(await elsewhere.call(token)).toHaveLength(36);
    await triggers.remove('default', id);
    expect(await call(token)).toBe('not_found');
    clock.advance(second);
    expect(await elsewhere.call(token)).toBe('not_found');
  });

  test('of an agent that is deleted while triggers of it are made, there is both or neither', async () => {
    const { triggers, agents, caller, elsewhere } = await world();

    for (let round = 0; round < 10; round++) {
      const agent_id = `agent-${round}`;
      await agents.create(anyWriter(), { id: agent_id });
      const [made, removed] = await Promise.allSettled([
        triggers.create(caller, { ...fields, agent_id }),
        elsewhere.agents.remove(anyWriter(), agent_id),
      ]);

      expect([made.status, removed.status].sort()).toEqual(['fulfilled', 'rejected']);
      if (made.status === 'rejected') expect(made.reason).toMatchObject({ code: 'not_found' });
      if (removed.status === 'rejected') expect(removed.reason).toMatchObject({ code: 'conflict' });
    }
  });

  test('50 calls at once under one key, in two processes, are one job', async () => {
    const { triggers, caller, call, elsewhere, database } = await world();
    const { token } = await triggers.create(caller, fields);
    const idempotencyKey = 'one';

    const jobs = await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        (i % 2 === 0 ? call : elsewhere.call)(token, { idempotencyKey }),
      ),
    );

    expect(new Set(jobs).size).toBe(1);
    expect(jobs[0]).toHaveLength(36);
    const rows = await database.read.kysely.selectFrom('jobs').selectAll().execute();
    expect(rows).toHaveLength(1);
    expect(rows[0]).toMatchObject({ trigger_type: 'webhook', user_id: 'Pushes', input: '{}' });
    expect(await call(token, { idempotencyKey, bytes: Buffer.from('x') })).toBe(
      'unsupported_media_type',
    );
    const headers = { 'content-type': 'text/plain' };
    const bytes = Buffer.from('x');
    expect(await call(token, { idempotencyKey, headers, bytes })).toBe('idempotency_key_reused');
  });

  test('a repeat is not mapped again, in whichever process, for 24 hours', async () => {
    const { triggers, caller, call, clock, elsewhere } = await world();
    const { id, token } = await triggers.create(caller, { ...fields, mapping: '{"a": 1}' });
    const repeat = { idempotencyKey: 'one' };
    const job = await call(token, repeat);
    await triggers.update(caller, id, { mapping: '$error("no")' });

    for (const again of [call, elsewhere.call]) expect(await again(token, repeat)).toBe(job);
    clock.advance(24 * 60 * minute);
    expect(await call(token, repeat)).toBe(job);
    clock.advance(1);
    expect(await call(token, repeat)).toBe('validation_error');
  });

  test('a key that is no longer valid sends an event once a minute for each trigger', async () => {
    const { triggers, caller, apiKeys, call, clock, database } = await world();
    const made = [await triggers.create(caller, fields), await triggers.create(caller, fields)];
    await apiKeys.revoke(caller.keyId);

    for (let i = 0; i < 5; i++) {
      for (const { token } of made) expect(await call(token)).toBe('not_found');
    }

    expect(await errorsIn(database)).toEqual(['invalid_api_key', 'invalid_api_key']);
    clock.advance(minute - 1);
    await call(made[0]?.token ?? '');
    expect(await errorsIn(database)).toHaveLength(2);
    clock.advance(1);
    await call(made[0]?.token ?? '');
    expect(await errorsIn(database)).toHaveLength(3);
  });

  test('an inactive skill sends an event, a paused agent does not', async () => {
    const { triggers, caller, agents, skills, call, clock, database } = await world();
    const { token } = await triggers.create(caller, fields);

    await agents.update(anyWriter(), 'default', { status: 'paused' });
    expect(await call(token)).toBe('agent_paused');
    expect(await errorsIn(database)).toEqual([]);
    await skills.setDeprecated('test', 'v1.0', 'echo', true);
    clock.advance(minute);
    expect(await call(token)).toBe('skill_not_found');
    expect(await errorsIn(database)).toEqual(['skill_not_found']);
  });
});
