/** When a conversation whose summaries failed is summarized again, on every database. */
import { describe, expect, test } from 'vitest';
import {
  maySummarize,
  noteFailedSummary,
  noteSummary,
  pauseAfter,
} from '../../src/core/conversations/summary-tries.ts';
import { engines } from '../support/databases.ts';

const conversationId = 'conversation';
const minute = 60_000;

describe.each(await engines())('on $name', (engine) => {
  test('each failure in a row makes the pause longer; a summary or another version ends it', async () => {
    const database = await (await engine.emptiedPlace()).open();
    await database.write(async (tx) => {
      await tx.insert('conversations', [
        {
          ...{ id: conversationId, organization_id: 'default', agent_id: 'default', user_id: 'u' },
          ...{ status: 'active', trigger_type: 'api', created_at: 0, updated_at: 0 },
        },
      ]);
    });
    const may = (now: number, agentVersion = 1) =>
      maySummarize(database.read, { conversationId, agentVersion }, now);
    const fail = (now: number, agentVersion = 1) =>
      database.write((tx) => noteFailedSummary(tx, { conversationId, agentVersion }, now));
    expect(await may(0)).toBe(true);

    await fail(0);
    expect(await may(minute - 1)).toBe(false);
    expect(await may(minute)).toBe(true);
    await fail(minute);
    expect(await may(5 * minute - 1)).toBe(false);
    expect(await may(5 * minute)).toBe(true);

    expect(await may(minute, 2)).toBe(true);
    await fail(minute, 2);
    expect(await may(2 * minute - 1, 2)).toBe(false);
    expect(await may(2 * minute, 2)).toBe(true);

    await database.write((tx) => noteSummary(tx, conversationId));
    expect(await may(0, 2)).toBe(true);
  });
});

test('the pause is 30 days at most', () => {
  expect([1, 2, 3].map(pauseAfter)).toEqual([minute, 4 * minute, 16 * minute]);
  expect(pauseAfter(1_000)).toBe(30 * 24 * 60 * minute);
});
