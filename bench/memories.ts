/**
 * Memories of one agent that has very many: p99 of a page, of a page of one tag, and of searches,
 * over HTTP and at a pace that leaves the machine mostly idle. The memories are recorded directly,
 * which is far faster than asking for each.
 */
import { rmSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import type { Database } from '../src/adapters/database/database.ts';
import { openSqlite } from '../src/adapters/database/sqlite.ts';
import { composeAgents } from '../src/apps/composition/agents.ts';
import type { Memories } from '../src/core/memories/memories.ts';
import { newMemory } from '../src/core/memories/record.ts';
import { systemClock } from '../src/kernel/clock.ts';
import { createLogger } from '../src/kernel/log.ts';
import { contextOf } from '../test/support/context.ts';
import { type Figure, round } from './figures.ts';
import { pace, percentile } from './load.ts';
import { type Server, startServer, temporaryDirectory } from './server.ts';

const agent = { organizationId: 'default', agentId: 'default' };
const memoriesPerWrite = 1_000;
const vocabularySize = 20_000;
const wordsEach = 30;
const settleMs = 2_000;
const owedMs = 20;

const common = Array.from({ length: 12 }, (_, i) => `common${i}`);

/** What is asked for, and what part of the memories that is. */
const questions = [
  { name: 'a page', query: '' },
  { name: 'a page far back', query: '?offset=90000' },
  { name: 'of one tag in ten', query: '?tag=tag-3' },
  { name: 'a word in one of ten', query: '?q=tenth' },
  { name: 'two words, one of two memories has one', query: '?q=even%20tenth' },
  { name: 'a word and a tag', query: '?q=even&tag=tag-4' },
  { name: 'a rare word', query: '?q=word19000' },
  // As many words as a query has.
  { name: 'twelve words of one in five', query: `?q=${common.join('%20')}` },
] as const;

/** Measures an agent with `count` memories; `seconds` of each kind of request. */
export async function measureMemories(count: number, seconds: number): Promise<Figure[]> {
  const dataDir = temporaryDirectory();
  try {
    // The first start makes the organization and its agent.
    await (await startServer('ours', dataDir)).stop();
    const begun = performance.now();
    await storeMemories(dataDir, count);
    console.log(`stored ${count} memories in ${round((performance.now() - begun) / 1000)} s`);
    const server = await startServer('ours', dataDir);
    try {
      await pause(settleMs);
      return await ask(server, count, seconds);
    } finally {
      await server.stop();
    }
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
}

async function ask(server: Server, count: number, seconds: number): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const { name, query } of questions) {
    const url = `${server.url}/api/agents/default/memories${query}`;
    const target = { method: 'GET' as const, url, headers: server.headers };
    await pace(target, { perSecond: 20, seconds: 1, status: 200 });
    const p99 = percentile(await pace(target, { perSecond: 50, seconds, status: 200 }), 0.99);
    figures.push({
      name: `${count} memories: ${name}, p99`,
      value: p99,
      shown: `${round(p99)} ms`,
      ...{ floor: owedMs, goal: owedMs / 2, unit: 'ms', better: 'less' as const },
    });
  }
  return figures;
}

async function storeMemories(dataDir: string, count: number): Promise<void> {
  const database = await openSqlite(dataDir, createLogger('silent'));
  try {
    await fill(database, count);
  } finally {
    await database.close();
  }
}

async function fill(database: Database, count: number): Promise<void> {
  const { memories } = composeAgents(contextOf({ database, clock: systemClock }));
  await rememberMany(database, memories, agent, count);
}

/** Gives an agent memories, many in a write. */
export async function rememberMany(
  database: Database,
  memories: Pick<Memories, 'keep'>,
  of: { organizationId: string; agentId: string },
  count: number,
): Promise<void> {
  const nothingElse = { userId: null, forgotten: [], share: 0, acceptedAt: Date.now() };
  for (let from = 0; from < count; from += memoriesPerWrite) {
    const remembered = Array.from({ length: Math.min(memoriesPerWrite, count - from) }, (_, i) =>
      newMemory(
        { content: contentOf(from + i), tag: `tag-${(from + i) % 10}` },
        { now: Date.now() },
      ),
    );
    await database.write((tx) => memories.keep(tx, [{ ...of, remembered, ...nothingElse }]));
  }
}

/** Some words are common and most are rare, as in any language. */
function contentOf(i: number): string {
  const words = Array.from(
    { length: wordsEach },
    () => `word${Math.floor(vocabularySize * Math.random() ** 3)}`,
  );
  if (i % 10 === 0) words[i % wordsEach] = 'tenth';
  if (i % 2 === 0) words.push('even');
  if (i % 5 === 0) words.push(...common);
  return words.join(' ');
}
