/** Calls for vectors against the budget of their agent, on every database: reserved before, charged after them. */
import { describe, expect, test } from 'vitest';
import type { Embeddings } from '../../src/adapters/models/embeddings.ts';
import { Prices } from '../../src/adapters/models/prices.ts';
import type { Credentials } from '../../src/core/credentials/credentials.ts';
import { Embedder } from '../../src/core/embeddings/embedder.ts';
import { ProviderPaces } from '../../src/core/paces/provider-paces.ts';
import { endLostCalls } from '../../src/core/usage/embedding-calls.ts';
import { reserve } from '../../src/core/usage/reservations.ts';
import { contextOf } from '../support/context.ts';
import { engines } from '../support/databases.ts';
import { own, vectorsWorld } from '../support/vectors-world.ts';
import { anyWriter } from '../support/writers.ts';

const credentials = { settingsForModel: async () => undefined } as unknown as Credentials;

describe.each(await engines())('on $name', (engine) => {
  test('questions at the same time get no more tokens together than a budget has left', async () => {
    const { database, clock, budget, usage } = await vectorsWorld(engine);
    const answering = Promise.withResolvers<void>();
    let asked = 0;
    const embed: Embeddings['embed'] = async ({ texts }) => {
      asked += 1;
      await answering.promise;
      const vectors = texts.map(() => Float32Array.of(1));
      return { vectors, usage: { prompt: 3, completion: 0 } };
    };
    const embedder = new Embedder(
      contextOf({ database, clock }),
      {
        name: 'local/small',
        embeddings: { embed } as Embeddings,
        credentials,
        paces: new ProviderPaces(contextOf({ database, clock })),
        prices: new Prices([]),
      },
      () => {},
    );
    // Each of the questions reserves its 16 bytes.
    await budget(40);
    let refused = 0;
    const questions = [1, 2, 3, 4, 5].map(async (n) => {
      const vector = await embedder.question(own, `Which vehicle ${n}?`);
      if (vector === null) refused += 1;
      return vector;
    });

    await expect.poll(() => [asked, refused]).toEqual([2, 3]);
    expect(await usage()).toMatchObject([{ calls: 2, reserved_tokens: 32 }]);
    answering.resolve();

    expect((await Promise.all(questions)).filter((vector) => vector !== null)).toHaveLength(2);
    const charged = { calls: 2, reserved_tokens: 0, prompt_tokens: 6 };
    expect(await usage()).toMatchObject([charged, charged]);
  });

  test('a call of the agent that needs much of its budget begins while vectors are made of many memories', async () => {
    const { given, budget, provider, processWith, database, clock, usage } =
      await vectorsWorld(engine);
    await budget(20_000);
    const texts = Array.from({ length: 20 }, (_, i) => `${i} ${'word '.repeat(300)}`);
    await given(...texts.map((text): [string, null] => [text, null]));
    provider.script(() => 'hang');
    const process = processWith('small');
    const hanging = process.vectors.embedSome();
    await expect.poll(() => provider.requests.length).toBe(1);
    const [held] = await usage();
    expect(held?.reserved_tokens).toBeLessThanOrEqual(2_000);

    const reservation = await database.write((tx) =>
      reserve(
        tx,
        {
          organizationId: own.organizationId,
          owners: [{ kind: 'agent', id: own.agentId }],
          ...{ prompt: 16_000, output: 1_000, model: 'a/model', price: null },
        },
        clock.now(),
      ),
    );

    expect(reservation).toMatchObject({ kind: 'granted', output: 1_000 });
    process.embedder.stop();
    await hanging;
  });

  test('what a process held that has died is charged by an estimate, and once', async () => {
    const { given, budget, provider, processWith, database, clock, usage } =
      await vectorsWorld(engine);
    await budget(1_000);
    await given(['Ada has bought an automobile', null]);
    provider.script(() => 'hang');
    const died = processWith('small');
    const hanging = died.vectors.embedSome();
    await expect.poll(() => provider.requests.length).toBe(1);
    expect(await usage()).toMatchObject([{ owner_kind: 'agent', reserved_tokens: 28 }]);
    clock.advance(60_000);
    expect(await endLostCalls({ database, clock })).toBe(0);

    clock.advance(31_000);
    expect(await endLostCalls({ database, clock })).toBe(1);

    const charged = { calls: 1, reserved_tokens: 0, estimated_tokens: 7, unreported_calls: 1 };
    const expected = [
      { owner_kind: 'agent', ...charged },
      { owner_kind: 'embedding_model', ...charged },
    ];
    expect(await usage()).toMatchObject(expected);
    died.embedder.stop();
    await hanging;
    expect(await usage()).toMatchObject(expected);
    expect(await endLostCalls({ database, clock })).toBe(0);
  });

  test('a call that was refused without a charge gives back what it held', async () => {
    const { given, budget, provider, embed, usage } = await vectorsWorld(engine);
    await budget(1_000);
    await given(['Ada has bought an automobile', null]);
    provider.script(() => ({ status: 503 }));

    await embed();

    expect(await usage()).toMatchObject([
      { owner_kind: 'agent', reserved_tokens: 0, estimated_tokens: 0, prompt_tokens: 0 },
      { owner_kind: 'embedding_model', reserved_tokens: 0, estimated_tokens: 0 },
    ]);
  });

  test('a new agent with the id of a deleted one has none of its calls under way', async () => {
    const { agents, given, budget, provider, processWith, usage } = await vectorsWorld(engine);
    await budget(1_000);
    await given(['Ada has bought an automobile', null]);
    provider.script(() => 'hang');
    const process = processWith('small');
    const hanging = process.vectors.embedSome();
    await expect.poll(() => provider.requests.length).toBe(1);

    await agents.remove(anyWriter(own.organizationId), own.agentId);
    await agents.create(anyWriter(own.organizationId), { id: own.agentId });
    process.embedder.stop();
    await hanging;

    expect(await usage()).toMatchObject([
      { owner_kind: 'deleted_agent', reserved_tokens: 0, calls: 1 },
      { owner_kind: 'embedding_model', calls: 1 },
    ]);
  });
});
