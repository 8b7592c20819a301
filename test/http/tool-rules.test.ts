/** Rules about the calls of tools (docs/agents.md). */
import { existsSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectInvalid, expectRefusal } from '../support/expectations.ts';
import { callingTools, inTurn } from '../support/scripted-provider.ts';
import { linesFile } from '../support/staged.ts';
import { newTenant } from '../support/tenant.ts';
import {
  newThinker,
  startThinkers,
  type Thinker,
  type Thinkers,
  toolNamed,
} from '../support/thinkers.ts';
import { waitFor } from '../support/wait-for.ts';

let world: Thinkers;
beforeAll(async () => {
  world = await startThinkers();
});
afterAll(() => world.stop());

const effect = 'staged/v1.0/effect';
const effected = toolNamed(effect);
const newRuled = (tool_rules: object[], more: object = {}) =>
  newThinker(world.platform, { skills: ['staged/*'], tool_rules, ...more });

/** How often the effect was had. */
const effectsIn = (log: string) =>
  existsSync(log) ? readFileSync(log, 'utf8').match(/^begin/gm)?.length : 0;

// biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of many shapes
type Body = any;

const tools = async ({ steps }: Thinker, jobId: string): Promise<Body[]> =>
  (await steps(jobId)).filter(({ kind }) => kind === 'tool');

function approvalOf({ get }: Thinker, jobId: string): Promise<Body> {
  return waitFor(
    async () => (await get(`/api/approvals?status=pending&job_id=${jobId}`)).body.data[0],
    { describe: () => 'the approval' },
  );
}

describe('of the rules whose tools match, the first one that is true decides', () => {
  const rules = [
    { tools: 'text/*', then: 'refuse' },
    { tools: 'staged/*', when: 'arguments.amount <= 100', then: 'allow' },
    { tools: effect, when: 'arguments.amount <= 500', then: 'ask', message: 'More than 100.' },
    { tools: 'staged/*', then: 'refuse', message: 'Never more than 500.' },
  ];

  test('to allow, to ask a person or to refuse, and says so on the step', async () => {
    // What a rule allows needs no approval.
    const thinker = await newRuled(rules, { approvals: ['staged/*'] });
    const log = linesFile();
    const calls = [50, 300, 900].map((amount) => ({ name: effected, input: { log, amount } }));
    world.provider.script(callingTools(calls, 'Done.'));
    const before = world.provider.requests.length;

    const jobId = await thinker.begin('Refund');
    const approval = await approvalOf(thinker, jobId);
    await thinker.jobIn(jobId, 'waiting');

    expect(approval.title).toBe(`Call ${effect}? More than 100.`);
    expect(approval.details).toMatchObject({ amount: 300 });
    expect(effectsIn(log)).toBe(1);
    await thinker.post(`/api/approvals/${approval.approval_id}/approve`, {});
    await thinker.jobIn(jobId, 'completed');

    expect(effectsIn(log)).toBe(2);
    const results = world.provider.requests.slice(before).at(-1)?.toolResults;
    expect(results?.join()).toContain('The call was not made: Never more than 500.');
    expect(await tools(thinker, jobId)).toMatchObject([
      { status: 'completed', rule: { number: 2, then: 'allow', message: null } },
      { status: 'completed', rule: { number: 3, then: 'ask', message: 'More than 100.' } },
      {
        status: 'failed',
        error: { code: 'tool_refused' },
        rule: { number: 4, then: 'refuse', message: 'Never more than 500.' },
      },
    ]);
  });

  test('and approvals does where none is true', async () => {
    const rule = { tools: 'staged/*', when: 'arguments.amount > 500', then: 'refuse' };
    const thinker = await newRuled([rule], { approvals: [effect] });
    world.provider.script(
      callingTools([{ name: effected, input: { log: linesFile(), amount: 1 } }], 'Done.'),
    );

    const jobId = await thinker.begin('Refund');

    expect((await approvalOf(thinker, jobId)).title).toBe(`Call ${effect}?`);
    await thinker.jobIn(jobId, 'waiting');
    const [step] = await tools(thinker, jobId);
    expect(step.rule).toEqual({ number: null, then: 'ask', message: null });
  });
});

describe('a condition', () => {
  test('counts the calls of the tool in the job, also those of one turn', async () => {
    const thinker = await newRuled([{ tools: 'staged/*', when: 'calls >= 3', then: 'refuse' }]);
    const log = linesFile();
    const call = { name: effected, input: { log } };
    world.provider.script(
      inTurn({ toolCalls: [call, call] }, { toolCalls: [call, call] }, { text: 'Done.' }),
    );

    const job = await thinker.task('Repeat');

    expect(job.status).toBe('completed');
    expect(effectsIn(log)).toBe(3);
    const outcomes = (await tools(thinker, job.job_id ?? job.id)).map(({ status }) => status);
    expect(outcomes).toEqual(['completed', 'completed', 'completed', 'failed']);
  });

  test('reads the user and what the job has spent', async () => {
    const when = 'user.id = "ann" and user.name = "Ann" and spent.tokens = 11';
    const thinker = await newRuled([{ tools: '*', when, then: 'refuse', message: 'Not Ann.' }]);
    const log = linesFile();
    const usage = { prompt: 10, completion: 1 };
    const calls = [{ name: effected, input: { log } }];
    const script = () =>
      world.provider.script(inTurn({ toolCalls: calls, usage }, { text: 'Done.', usage }));

    script();
    await thinker.task('Go', {}, { 'x-user-id': 'bob', 'x-user-name': 'Ann' });
    expect(effectsIn(log)).toBe(1);
    script();
    await thinker.task('Go', {}, { 'x-user-id': 'ann', 'x-user-name': 'Ann' });
    expect(effectsIn(log)).toBe(1);
  });

  test.each([
    [
      'loops without end',
      '($f := function(){ $f() }; $f())',
      /rule 1 of the agent (?:failed: |could not)/,
    ],
    ['throws', '$error("no")', /rule 1 of the agent failed: /],
    ['is neither true nor false', '"yes"', /gives neither true nor false/],
  ])('that %s refuses the call', async (_, when, reason) => {
    const thinker = await newRuled([{ tools: '*', when, then: 'allow' }]);
    const log = linesFile();
    world.provider.script(callingTools([{ name: effected, input: { log } }], 'Done.'));
    const before = world.provider.requests.length;

    expect((await thinker.task('Go')).status).toBe('completed');

    expect(effectsIn(log)).toBe(0);
    expect(world.provider.requests.slice(before).at(-1)?.toolResults[0]).toMatch(reason);
  });
});

test('a decision is kept over a wait, whatever the rules say by then', async () => {
  const thinker = await newRuled([{ tools: 'staged/*', then: 'ask' }]);
  const creator = await newTenant(world.platform, { organization_id: thinker.organization });
  const log = linesFile();
  world.provider.script(callingTools([{ name: effected, input: { log } }], 'Done.'));
  const jobId = await thinker.begin('Go');
  const approval = await approvalOf(thinker, jobId);
  await thinker.jobIn(jobId, 'waiting');

  await creator.put('/api/agents/thinker', { tool_rules: [{ tools: '*', then: 'refuse' }] });
  await thinker.post(`/api/approvals/${approval.approval_id}/approve`, {});
  await thinker.jobIn(jobId, 'completed');

  expect(effectsIn(log)).toBe(1);
});

describe('rules are refused', () => {
  test.each([
    [
      'tool_rules.1.when',
      [
        { tools: '*', then: 'ask' },
        { tools: '*', when: 'a >', then: 'ask' },
      ],
    ],
    ['tool_rules.0.when', [{ tools: '*', when: 'argument.amount > 1', then: 'ask' }]],
    ['tool_rules.0.when', [{ tools: '*', when: 'not (calls > 1)', then: 'ask' }]],
    ['tool_rules.0.when', [{ tools: '*', when: '$exists(amount) and true', then: 'ask' }]],
    ['tool_rules.0.then', [{ tools: '*', then: 'maybe' }]],
    ['tool_rules.0.tools', [{ tools: 'shop/order', then: 'ask' }]],
    ['tool_rules.0.tools', [{ tools: 'agent/run-task', then: 'ask' }]],
    ['tool_rules.0.tools', [{ then: 'ask' }]],
    ['tool_rules.0.when', [{ tools: '*', when: 'x'.repeat(2_001), then: 'ask' }]],
    ['tool_rules.0.message', [{ tools: '*', then: 'ask', message: 'x'.repeat(201) }]],
    ['tool_rules', Array.from({ length: 51 }, () => ({ tools: '*', then: 'ask' }))],
  ])('with 400 on %s', async (field, tool_rules) => {
    const { post, put } = await newTenant(world.platform);
    expectInvalid(await post('/api/agents', { id: 'other', tool_rules }), field);
    expectInvalid(await put('/api/agents/default', { tool_rules }), field);
  });

  test.each([
    'arguments.lines[amount > 5].price = 1 or calls >= 5',
    '$sum(arguments.lines.(price * amount)) > 10 and spent.usd > 2',
    '($u := user; $u.id = "ada" ? arguments[0].x ~> $exists : $count(arguments.*) > 1)',
    '$count($filter(arguments.ids, function($id) { $id = user.id })) > 0',
    '$.arguments.x = "y" and "a" in [arguments.a, calls]',
  ])('never for %s', async (when) => {
    const { put } = await newTenant(world.platform);
    const tool_rules = [{ tools: '*', when, then: 'ask' }];
    expect((await put('/api/agents/default', { tool_rules })).status).toBe(200);
  });

  test('never for naming the agent that gets a task', async () => {
    const { put } = await newTenant(world.platform);
    const tool_rules = [{ tools: 'agent/tides', then: 'ask' }];
    const { status, body } = await put('/api/agents/default', { tool_rules });
    expect([status, body.tool_rules]).toEqual([200, tool_rules]);
  });

  test('with 403 without the scope approvals, and so is deleting an agent that has some', async () => {
    const rules = [{ tools: effect, then: 'ask' }];
    const { organization } = await newRuled(rules, { skills: [effect] });
    const narrow = await newTenant(world.platform, {
      organization_id: organization,
      scopes: ['agent', 'staged'],
    });

    const changed = await narrow.put('/api/agents/thinker', { tool_rules: [] });

    expectRefusal(changed, 403, 'insufficient_scope');
    expectRefusal(await narrow.send('DELETE', '/api/agents/thinker'), 403, 'insufficient_scope');
    expect((await narrow.put('/api/agents/thinker', { name: 'Other' })).status).toBe(200);
  });
});
