/** `GET /api/queue` and `GET /admin/queue`. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { expectRefusal } from '../support/expectations.ts';
import { type Platform, startPlatform } from '../support/platform.ts';
import { acting, beginning, gate, play, stagedSkills, startStaged } from '../support/staged.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';
import { waitFor } from '../support/wait-for.ts';

const limited = join(import.meta.dirname, '../fixtures/skills/limited');

let platform: Platform;
beforeAll(async () => {
  platform = await startStaged({ environment: { WORKER_CONCURRENCY: '1' } });
});
afterAll(() => platform.stop());

/** A run that goes on until its gate opens. */
async function occupy(tenant: Tenant) {
  const held = gate();
  const begun = beginning();
  await tenant.start(play, acting(begun.step, { until: held.path }));
  await begun.shown();
  return held;
}

test('says what waits, since when, and that all slots are taken', async () => {
  const loud = await newTenant(platform);
  const quiet = await newTenant(platform);
  const held = await occupy(loud);
  const jobId = await quiet.start('util/v1.0/echo', { text: 'x' });
  await quiet.start('util/v1.0/echo', { text: 'y' }, { 'x-delay-seconds': '3600' });

  // A key is answered by its own jobs alone: the oldest has to be due for a second.
  const own = await waitFor(
    async () => {
      const answer = await quiet.get('/api/queue');
      return answer.body.held_by.length > 0 && answer;
    },
    { describe: 'the job waits for its turn' },
  );
  // In a cluster the slots of a process are those of its last heartbeat, or its own.
  const all = await platform.admin('GET', '/admin/queue');
  held.open();

  expect(own.status).toBe(200);
  const counts = {
    waiting: 1,
    later: 1,
    running: 0,
    oldest: { job_id: jobId, priority: 'normal' },
  };
  const message = 'Jobs of this organization wait for their turn: none of its runs are under way.';
  expect(own.body.queues[0]).toMatchObject({ queue: 'skill-execution', ...counts });
  expect(own.body.held_by).toEqual([{ code: 'slots_taken', message, subject: null }]);
  expect(own.body.organizations).toMatchObject({ data: [{ name: quiet.organization }], total: 1 });
  expect(own.body.skills.data).toMatchObject([{ name: 'util/v1.0/echo', ...counts, held_by: [] }]);
  expect(own.body.agents.data).toMatchObject([{ name: 'default', ...counts }]);
  expect(own.text).not.toContain(loud.organization);
  expect(own.body.queues[0]).not.toHaveProperty('slots');

  expect(all.body.queues[0]).toMatchObject({
    queue: 'skill-execution',
    slots: { workers: 1, slots: 1, kept: 0, taken: 1 },
    held_by: [
      {
        code: 'slots_taken',
        message: `The one slot of 1 worker process is taken. Under way: ${loud.organization} 1.`,
        subject: {
          type: 'organization',
          id: loud.organization,
          organization_id: loud.organization,
        },
      },
    ],
  });
  expect(all.body.queues.map(({ queue }: { queue: string }) => queue)).toEqual([
    'skill-execution',
    'scheduled-jobs',
    'webhooks',
  ]);
  const names = all.body.organizations.data.map(({ name }: { name: string }) => name);
  expect(names).toEqual(expect.arrayContaining([loud.organization, quiet.organization]));
  await quiet.jobIn(jobId, 'completed');
});

test('holds nothing once the slot is free', async () => {
  const tenant = await newTenant(platform);
  const { body: job } = await tenant.run('util/v1.0/echo', { text: 'x' });
  await waitFor(async () => (await tenant.get('/api/queue')).body.organizations.total === 0, {
    describe: `nothing is left of ${job.job_id}`,
  });
  expect((await tenant.get('/api/queue')).body).toMatchObject({ held_by: [] });
});

test('needs a key, and for all organizations the admin secret', async () => {
  const without = await platform.request('GET', '/api/queue');
  expectRefusal(without, 401, 'authentication_required');
  const { key } = await newTenant(platform);
  const withKey = await platform.request('GET', '/admin/queue', { key });
  expect(withKey.status).toBe(401);
});

test('names a skill that no process has loaded any more, while its jobs come later', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'skillwright-queue-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const file = join(directory, 'gone.ts');
  writeFileSync(
    file,
    `export default { category: 'gone', name: 'away', version: 'v1.0', displayName: 'Away', description: 'Goes.',
      parameters: { type: 'object' }, output: { type: 'object' }, run: async () => ({}) };`,
  );
  const own = await startPlatform({ skillsDirs: [directory], executors: 'own' });
  onTestFinished(() => own.stop());
  const tenant = await newTenant(own);
  const jobId = await tenant.start('gone/v1.0/away', {}, { 'x-delay-seconds': '3600' });
  const skills = async () => (await tenant.get('/api/queue')).body.skills.data;
  expect(await skills()).toMatchObject([{ name: 'gone/v1.0/away', later: 1, held_by: [] }]);

  rmSync(file);
  await own.admin('POST', '/admin/skills/reload');

  const message = 'No live worker process has loaded gone/v1.0/away.';
  const held = await waitFor(
    async () => {
      const [skill] = await skills();
      return skill.held_by.length > 0 && skill;
    },
    { describe: 'the skill is not loaded' },
  );
  expect(held).toMatchObject({
    waiting: 0,
    later: 1,
    held_by: [{ code: 'skill_not_loaded', message, subject: { id: 'gone/v1.0/away' } }],
  });
  expect((await tenant.get(`/api/jobs/${jobId}`)).body.status).toBe('queued');
});

test('a key reads the ids of no other key of its organization, and the administrator does', async () => {
  const own = await startStaged();
  onTestFinished(() => own.stop());
  const limitedKey = await newTenant(own);
  const { organization: organization_id } = limitedKey;
  const other = await newTenant(own, { organization_id });
  await own.admin('PUT', `/admin/api-keys/${limitedKey.keyId}/queue`, { max_concurrency: 1 });
  const end = gate();
  const first = await limitedKey.start(play, acting({ until: end.path }));
  const second = await limitedKey.start('util/v1.0/echo', { text: 'x' });
  await waitFor(async () => (await limitedKey.get(`/api/jobs/${second}`)).body.waiting_for, {
    describe: 'the job waits for a place of its key',
  });

  const [ofOther, ofOwn, ofAll] = await Promise.all([
    other.get('/api/queue'),
    limitedKey.get('/api/queue'),
    own.admin('GET', '/admin/queue'),
  ]);
  end.open();

  expect(ofOther.text).toContain('1 job waits for a place: max_concurrency of API key.');
  expect(ofOther.text).not.toContain(limitedKey.keyId);
  const subject = { type: 'api_key', id: limitedKey.keyId };
  for (const { body } of [ofOwn, ofAll]) {
    expect(body.skills.data).toContainEqual(
      expect.objectContaining({
        held_by: [
          expect.objectContaining({ code: 'limit', subject: expect.objectContaining(subject) }),
        ],
      }),
    );
  }
  for (const id of [first, second]) await limitedKey.jobIn(id, 'completed');
});

test('shows the limits and pauses of organizations, agents and skills', async () => {
  const own = await startPlatform({ skillsDirs: [...stagedSkills, limited] });
  onTestFinished(() => own.stop());
  const tenant = await newTenant(own);
  const path = `/admin/organizations/${tenant.organization}`;
  await own.admin('PUT', `${path}/queue`, { max_concurrency: 7 });
  await own.admin('POST', '/admin/skills/limited/v1.0/counted/pause');
  await tenant.send('POST', '/api/agents/default/queue/pause');
  for (const name of ['counted', 'paced', 'slows-down']) {
    await tenant.start(`limited/v1.0/${name}`, { log: 'none' }, { 'x-delay-seconds': '3600' });
  }

  const { body } = await tenant.get('/api/queue');

  expect(body.organizations.data).toMatchObject([
    { limits: [{ limit: 7, per: 'organization', per_seconds: null }], paused: false },
  ]);
  const counted = [{ limit: 2, per: 'platform', per_seconds: null }];
  const paced = [{ limit: 4, per: 'platform', per_seconds: 5 }];
  const skills: { name: string; limits: unknown; paused: boolean }[] = body.skills.data;
  expect(new Map(skills.map(({ name, limits, paused }) => [name, { limits, paused }]))).toEqual(
    new Map([
      ['limited/v1.0/counted', { limits: counted, paused: true }],
      ['limited/v1.0/paced', { limits: paced, paused: false }],
      ['limited/v1.0/slows-down', { limits: [], paused: false }],
    ]),
  );
  expect(body.agents.data).toMatchObject([{ name: 'default', limits: [], paused: true }]);
});
