/**
 * Searches among very many memories on both databases, in the process that asks: of one agent that has all of them, and
 * spread over agents and their users. The texts have the words that any text has, and so have the questions.
 */
import { sql } from 'kysely';
import type { Database } from '../src/adapters/database/database.ts';
import { composeAgents } from '../src/apps/composition/agents.ts';
import type { Memories } from '../src/core/memories/memories.ts';
import { newMemory } from '../src/core/memories/record.ts';
import { RunMemories } from '../src/core/memories/run-memory.ts';
import { systemClock } from '../src/kernel/clock.ts';
import { newId } from '../src/kernel/ids.ts';
import { createLogger } from '../src/kernel/log.ts';
import { contextOf } from '../test/support/context.ts';
import { anyWriter } from '../test/support/writers.ts';
import { onBothDatabases } from './both-databases.ts';
import { type Figure, round } from './figures.ts';
import { percentile } from './load.ts';

const organizationId = 'default';
const one = 'one';
const agentsCount = 20;
const usersCount = 50;
const vocabularySize = 20_000;
const contentWords = 12;
const perWrite = 1_000;
const askedEach = 300;
const owedMs = 20;
const page = { limit: 20, offset: 0 };
/** Of no user, and of a job that there need not be. */
const run = {
  userId: null,
  jobId: newId(),
  conversationId: newId(),
  acceptedAt: Infinity,
  isTrial: false,
};

const joining = 'the of to and in is for that it on with as are was at by be this from or'.split(
  ' ',
);
/** Words that so many of a hundred memories have. */
const frequent = { customer: 90, order: 60, delivery: 35, invoice: 20, refund: 10, berlin: 3 };

/** What is asked; each `#` becomes another word of the vocabulary each time. */
const questions = [
  { name: 'a question with joining words', text: 'what is the # of the customer in the #' },
  { name: 'joining words alone', text: 'what is this for and with that' },
  { name: 'frequent words', text: 'customer order delivery invoice' },
  {
    name: 'frequent words and a rare one',
    text: 'when was the refund of the order # to the customer',
  },
  { name: 'one frequent word', text: 'customer' },
  { name: 'rare words', text: '# # #' },
  {
    name: 'a sentence of 16 words',
    text: 'order # customer # invoice # delivery # refund # berlin # # # # #',
  },
  { name: 'two frequent words in quotes', text: '"customer order"' },
] as const;

export function measureMemorySearches(count: number): Promise<Figure[]> {
  return onBothDatabases((database, name) => measureOn(database, name, count));
}

async function measureOn(database: Database, name: string, count: number): Promise<Figure[]> {
  const base = { database, clock: systemClock };
  const { agents, memories } = composeAgents(contextOf(base));
  const log = createLogger('silent');
  const runMemories = new RunMemories(contextOf({ ...base, log }), memories, agents);
  await database.write((tx) => agents.createDefault(tx, organizationId, 0));
  const some = Array.from({ length: agentsCount }, (_, i) => `agent-${i}`);
  for (const id of [one, ...some]) await agents.create(anyWriter(organizationId), { id });
  const begun = performance.now();
  const write = { database, memories, count };
  await fill(write, () => ({ agentId: one, userId: null }));
  await fill(write, (i) => ({
    agentId: `agent-${i % agentsCount}`,
    userId: i % 3 === 0 ? null : `user-${i % usersCount}`,
  }));
  const seconds = round((performance.now() - begun) / 1000);
  console.log(`${name}: stored ${2 * count} memories in ${seconds} s`);
  if (database.read.dialect === 'postgres') await sql`vacuum analyze`.execute(database.read.kysely);
  const figures: Figure[] = [];
  for (const question of questions) {
    for (const [agentId, where] of [
      [one, 'one agent'],
      ['agent-7', 'many agents'],
    ] as const) {
      const of = { organizationId, agentId };
      const recall = (query: string) =>
        runMemories.begin({ ...of, ...run }).ask('recall', { query, limit: page.limit });
      const list = (q: string) => memories.list(of, { q }, page);
      const asked = `${name}, ${where}: ${question.name}`;
      figures.push(await ask(question, { name: `${asked}, recall by a run`, search: recall }));
      figures.push(await ask(question, { name: `${asked}, list with total`, search: list }));
    }
  }
  return figures;
}

type Question = (typeof questions)[number];

async function ask(
  { text }: Question,
  { name, search }: { name: string; search(text: string): Promise<unknown> },
): Promise<Figure> {
  const took: number[] = [];
  const before = process.cpuUsage();
  for (let i = 0; i < askedEach; i++) {
    const asked = text.replaceAll('#', rareWord);
    const begun = performance.now();
    await search(asked);
    took.push(performance.now() - begun);
  }
  const { user, system } = process.cpuUsage(before);
  const p99 = percentile(took, 0.99);
  const cpu = (user + system) / 1000 / askedEach;
  return {
    name: `${name}, p99`,
    value: p99,
    shown: `${round(p99)} ms (median ${round(percentile(took, 0.5))}, ${round(cpu)} of this process)`,
    ...{ floor: owedMs, goal: owedMs / 2, unit: 'ms', better: 'less' as const },
  };
}

interface Filling {
  readonly database: Database;
  readonly memories: Pick<Memories, 'keep'>;
  readonly count: number;
}

/** Records memories, each of the agent and the user that `of` names for it. */
async function fill(
  { database, memories, count }: Filling,
  of: (i: number) => { agentId: string; userId: string | null },
): Promise<void> {
  for (let from = 0; from < count; from += perWrite) {
    const made = Array.from({ length: Math.min(perWrite, count - from) }, (_, i) => {
      const { agentId, userId } = of(from + i);
      const memory = newMemory({ content: contentOf() }, { now: Date.now(), userId });
      return { agentId, memory };
    });
    const runs = [...Map.groupBy(made, ({ agentId }) => agentId)].map(([agentId, its]) => ({
      ...{ organizationId, agentId, userId: null, forgotten: [], share: 0, acceptedAt: Infinity },
      remembered: its.map(({ memory }) => memory),
    }));
    await database.write((tx) => memories.keep(tx, runs));
  }
}

/** Some words of the vocabulary are common and most are rare, as in any language. */
const rareWord = () => `word${Math.floor(vocabularySize * Math.random() ** 2)}`;

function contentOf(): string {
  const words = Array.from({ length: contentWords }, (_, i) =>
    i % 2 === 0 ? rareWord() : (joining[Math.floor(joining.length * Math.random() ** 2)] ?? ''),
  );
  for (const [word, percent] of Object.entries(frequent)) {
    if (Math.random() * 100 < percent) words.push(word);
  }
  return words.join(' ');
}
