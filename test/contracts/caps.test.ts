/** Limits of an organization: exact, with any number of simultaneous requests for the last resource. */
import { describe, expect, test } from 'vitest';
import { composeAgents } from '../../src/apps/composition/agents.ts';
import { ApiKeys } from '../../src/core/api-keys/api-keys.ts';
import { readConfig } from '../../src/core/config/config.ts';
import { contextOf } from '../support/context.ts';
import { engines } from '../support/databases.ts';
import { manualClock } from '../support/manual-clock.ts';
import { webhooksWorld } from '../support/webhooks-world.ts';
import { anyWriter } from '../support/writers.ts';

/** What became of calls made at once: how many succeeded, and the errors of the others. */
async function outcomesOf(calls: readonly Promise<unknown>[]) {
  const results = await Promise.allSettled(calls);
  const refusals = results.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
  return { made: results.length - refusals.length, refusals };
}

describe.each(await engines())('on $name', (engine) => {
  test('of 20 agents created at once, only the allowed number is created', async () => {
    const database = await engine.emptied();
    const clock = manualClock();
    const { agents } = composeAgents(
      contextOf({ database, clock, config: readConfig({ AGENTS_MAX: '8' }) }),
    );
    await new ApiKeys(contextOf({ database, clock }), agents).issue({
      client_name: 'a',
      scopes: ['*'],
    });

    const creating = Array.from({ length: 20 }, () => agents.create(anyWriter(), {}));
    const { made, refusals } = await outcomesOf(creating);

    // The organization has had its agent `default` before.
    expect(made).toBe(7);
    expect((await agents.list('default', { limit: 50, offset: 0 })).total).toBe(8);
    const message =
      'The organization has 8 agents, which is as many as it may have: delete one first';
    for (const refusal of refusals) expect(refusal).toMatchObject({ code: 'conflict', message });
  });

  test('a revoked API key makes room for another', async () => {
    const database = await engine.emptied();
    const clock = manualClock();
    const { agents } = composeAgents(contextOf({ database, clock }));
    const keys = new ApiKeys(
      contextOf({ database, clock, config: readConfig({ API_KEYS_MAX: '2' }) }),
      agents,
    );
    const issue = () => keys.issue({ client_name: 'a', scopes: ['*'] });
    const { id } = await issue();
    await issue();

    await expect(issue()).rejects.toMatchObject({ code: 'conflict' });
    await keys.revoke(id);

    await expect(issue()).resolves.toMatchObject({ enabled: true });
    const elsewhere = { client_name: 'a', scopes: ['*'], organization_id: 'other' };
    await expect(keys.issue(elsewhere)).resolves.toMatchObject({ organization_id: 'other' });
  });

  test('webhooks are limited for an agent and for its organization; a deleted one makes room', async () => {
    const { agents, webhook, webhooks } = await webhooksWorld(engine, {
      caps: { ofAgent: 3, ofOrganization: 5 },
    });
    await agents.create(anyWriter(), { id: 'second' });

    const first = await outcomesOf(Array.from({ length: 10 }, () => webhook()));
    const second = await outcomesOf(
      Array.from({ length: 10 }, () => webhook({ agent_id: 'second' })),
    );

    expect([first.made, second.made]).toEqual([3, 2]);
    expect(first.refusals[0].message).toBe(
      'The agent has 3 webhooks, which is as many as it may have: delete one first',
    );
    expect(second.refusals[0]).toMatchObject({
      code: 'conflict',
      message: 'The organization has 5 webhooks, which is as many as it may have: delete one first',
    });
    const [listed] = await webhooks.list('default');
    await webhooks.remove('default', listed?.id ?? '');
    await expect(webhook({ agent_id: 'second' })).resolves.toBeTypeOf('string');
    await expect(webhook({}, 'other')).resolves.toBeTypeOf('string');
  });
});
