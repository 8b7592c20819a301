/** The weights of organizations, on both databases. */
import { describe, expect, test } from 'vitest';
import { Weights } from '../../src/core/jobs/turns/weights.ts';
import { engines } from '../support/databases.ts';
import { jobsWorld } from '../support/jobs-world.ts';

describe.each(await engines())('on $name', (engine) => {
  test('a weight is followed by another process once that has read it, also back to 1', async () => {
    const world = await jobsWorld(engine);
    await world.callerOf('acme');
    const [one, other] = [new Weights(world.context), new Weights(world.context)];

    await one.set('acme', 5);
    expect([...one.byOrganization]).toEqual([['acme', 5]]);
    expect([...other.byOrganization]).toEqual([]);
    await other.refresh();
    expect([...other.byOrganization]).toEqual([['acme', 5]]);

    await other.set('acme', 1);
    await one.refresh();
    expect([...one.byOrganization]).toEqual([]);
    expect(await one.find('acme')).toBe(1);
  });
});
