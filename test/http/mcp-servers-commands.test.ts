/** Outside servers that are commands: nothing of a call reaches another one, and a flood costs a sentence. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { follow } from '../support/event-stream.ts';
import type { Platform } from '../support/platform.ts';
import { actingCommand } from '../support/scripted-command.ts';
import { startStaged } from '../support/staged.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';

let platform: Platform;
beforeAll(async () => {
  platform = await startStaged({ environment: { MCP_COMMANDS: 'on' } });
});
afterAll(() => platform.stop());

let made = 0;
/** The skill of the tool of a new server. */
async function added(): Promise<string> {
  made += 1;
  const fields = { name: `acts-${made}`, ...actingCommand, organizations: ['*'] };
  const { body, text } = await platform.admin('POST', '/admin/mcp-servers', fields);
  expect(body, text).toMatchObject({ status: 'available' });
  return body.skills[0].skill;
}

const eventsOf = ({ key }: Tenant, jobId: string) =>
  follow(`${platform.url}/api/jobs/${jobId}/events`, { 'x-api-key': key });
/** Begins a call that is never answered, and waits until the server is at work on it. */
async function hold(tenant: Tenant, skill: string): Promise<string> {
  const job = await tenant.start(skill, { text: 'hold' });
  const stream = await eventsOf(tenant, job);
  await stream.event(({ event }) => event === 'log', 'the line of the server');
  stream.leave();
  return job;
}
const pidFor = async (tenant: Tenant, skill: string) =>
  (await tenant.run(skill, { text: 'now' })).body.output.pid as number;

test('organizations have processes of their own, so the words of a call reach no other organization', async () => {
  const skill = await added();
  const [one, other] = [await newTenant(platform), await newTenant(platform)];
  const held = await hold(one, skill);
  const waits = await other.start(skill, { text: 'after' });
  await one.post(`/api/jobs/${held}/cancel`);
  await one.jobIn(held, 'cancelled');
  const ofOther = await pidFor(other, skill);
  expect(await pidFor(one, skill)).not.toBe(ofOther);
  const { body: approvals } = await other.get('/api/approvals');
  expect(approvals.data).toEqual([]);
  const stream = await eventsOf(other, waits);
  await other.post(`/api/jobs/${waits}/cancel`);
  expect(JSON.stringify(await stream.ended)).not.toContain('late words');
});

test('what a server says and asks of a cancelled call reaches no call, and its process takes no further one', async () => {
  const skill = await added();
  const tenant = await newTenant(platform);
  const before = await pidFor(tenant, skill);
  const held = await hold(tenant, skill);
  const waits = await tenant.start(skill, { text: 'after' });
  const stream = await eventsOf(tenant, waits);
  await stream.event(({ data }) => data.status === 'active', 'the start of the second call');
  await tenant.post(`/api/jobs/${held}/cancel`);
  const { body: job } = await tenant.jobIn(waits, 'completed', 'failed');
  expect(job.output).toEqual({ pid: before, answered: { action: 'cancel' } });
  const said = JSON.stringify(await stream.ended);
  expect(said).not.toContain('late words');
  expect(said).toContain('no person was asked');
  expect((await tenant.get('/api/approvals')).body.data).toEqual([]);
  expect(await pidFor(tenant, skill)).not.toBe(before);
});

test('a server that floods a call with messages ends it with a sentence', async () => {
  const skill = await added();
  const tenant = await newTenant(platform);
  const { body: job } = await tenant.run(skill, { text: 'flood' });
  expect(job.error).toMatchObject({
    code: 'skill_execution_failed',
    message: expect.stringContaining('sent more than 10000 messages during a call'),
  });
  expect(await pidFor(tenant, skill)).toEqual(expect.any(Number));
});
