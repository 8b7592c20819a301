/** What calls of models learn of their providers, on every database. */
import { describe, expect, test } from 'vitest';
import { ModelError } from '../../src/adapters/models/model.ts';
import { pacedProviderOf } from '../../src/core/paces/paced-provider.ts';
import { ProviderPaces } from '../../src/core/paces/provider-paces.ts';
import { awaitMoment } from '../../src/core/thinking/pace/paced-calls.ts';
import { Patience } from '../../src/core/thinking/pace/patience.ts';
import { contextOf } from '../support/context.ts';
import { engines } from '../support/databases.ts';
import { manualClock } from '../support/manual-clock.ts';

const paced = (model: string) => pacedProviderOf(model, undefined, 'default');
const call = { tokens: 1_000, until: Number.POSITIVE_INFINITY, hasWaited: false };

describe.each(await engines())('on $name', (engine) => {
  async function world() {
    const clock = manualClock();
    const database = await (await engine.emptiedPlace()).open();
    const paces = new ProviderPaces(contextOf({ database, clock }));
    const fail = (model: string, more: ConstructorParameters<typeof ModelError>[2]) =>
      paces.failed(paces.begin(paced(model)), new ModelError('unavailable', 'No.', more));
    const waitOf = async (model: string) =>
      (await paces.momentFor(paced(model), call)).at - clock.now();
    // Of another process.
    const other = new ProviderPaces(contextOf({ database, clock }));
    return { paces, other, clock, fail, waitOf };
  }

  test('a refusal of one model holds up no other of its provider', async () => {
    const { fail, waitOf } = await world();
    await fail('openai/one', { isRateLimited: true, retryAfterMs: 60_000 });
    expect(await waitOf('openai/one')).toBe(60_000);
    expect(await waitOf('openai/other')).toBe(0);
  });

  test('a limit of a provider is kept to after the pause of a model', async () => {
    const { paces, clock, fail } = await world();
    const settings = { apiKey: null, baseUrl: null, limits: { calls: 60, tokens: null } };
    const limited = pacedProviderOf('openai/one', settings, 'default');
    await fail('openai/one', { retryAfterMs: 30_000 });

    clock.advance(25_000);
    const moments: number[] = [];
    for (let nth = 0; nth < 4; nth++) {
      const moment = await paces.momentFor(limited, call);
      expect(moment.kind).toBe('moment');
      moments.push(moment.at - clock.now());
    }

    expect(moments[0]).toBe(5_000);
    const gaps = moments.slice(1).map((at, i) => at - (moments[i] ?? 0));
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(1_000);
  });

  test('a provider that cannot be reached is left alone by the calls of all its models', async () => {
    const { fail, waitOf } = await world();
    for (const model of ['one', 'other', 'third']) await fail(`openai/${model}`, { wasLost: true });
    expect(await waitOf('openai/fourth')).toBeGreaterThan(1_000);
    expect(await waitOf('anthropic/one')).toBe(0);
  });

  test('an organization of which many calls wait holds up no other one, in any process', async () => {
    const { paces, clock, fail, other } = await world();
    await fail('openai/one', { isRateLimited: true, retryAfterMs: 1_000 });
    clock.advance(500);
    const take = (by: ProviderPaces, organization: string) =>
      by.momentFor(pacedProviderOf('openai/one', undefined, organization), call);
    const many = await Promise.all(Array.from({ length: 300 }, () => take(paces, 'many')));
    const few = await take(other, 'few');

    expect(many.filter(({ kind }) => kind === 'moment').length).toBeLessThan(20);
    expect(few.kind).toBe('moment');
    expect(few.at - clock.now()).toBeLessThan(6_000);
  });

  test('a moment that has passed unused is taken anew', async () => {
    const { paces, clock } = await world();
    const settings = { apiKey: null, baseUrl: null, limits: { calls: 600, tokens: null } };
    const provider = pacedProviderOf('openai/one', settings, 'default');
    const nextAt = async () => (await paces.momentFor(provider, call)).at - clock.now();
    const parts = { context: { clock }, paces, credentials: { settingsForModel: () => settings } };
    const asking = {
      attempt: { parts, run: { job: { organization_id: 'default' } } },
      generation: {
        patience: new Patience(60),
        output: 1,
        call: { signal: new AbortController().signal },
      },
    } as unknown as Parameters<typeof awaitMoment>[0];

    const renew = await awaitMoment(asking, 'openai/one', 1, false);
    clock.advance(900);
    await renew();
    expect(await nextAt()).toBe(0);
    clock.advance(200);
    await renew();
    expect(await nextAt()).toBe(100);
  });
});
