/**
 * How well a search finds: 216 questions in twelve languages, each for one of 2,000 memories of an agent, in other
 * words or inflections than it has. Recall@5 is the part of the questions whose memory is among the first five; MRR is
 * the mean of one divided by its place. Weights and endings may be tuned on the odd questions; the even ones are
 * reported beside them.
 */

import type { Database } from '../src/adapters/database/database.ts';
import { composeAgents } from '../src/apps/composition/agents.ts';
import type { Memories } from '../src/core/memories/memories.ts';
import { newMemory } from '../src/core/memories/record.ts';
import { systemClock } from '../src/kernel/clock.ts';
import { contextOf } from '../test/support/context.ts';
import { onBothDatabases } from './both-databases.ts';
import { type Figure, round } from './figures.ts';
import { texts } from './recall-texts.ts';

const agent = { organizationId: 'default', agentId: 'default' };
const memoriesCount = 2_000;
const placesMax = 5;

interface Question {
  readonly language: string;
  readonly memory: string;
  readonly text: string;
}

/** Where a question's memory stands in the answer, from 1 on; 0 for nowhere among the first 50. */
type Asked = Question & { readonly place: number };

export function measureRecall(): Promise<Figure[]> {
  return onBothDatabases(measureOn);
}

async function measureOn(database: Database, name: string): Promise<Figure[]> {
  const { agents, memories } = composeAgents(contextOf({ database, clock: systemClock }));
  await database.write((tx) => agents.createDefault(tx, agent.organizationId, 0));
  const questions = questionsOf();
  const remembered = [...questions.map(({ memory }) => memory), ...distractors(questions.length)]
    .map((content, i) => ({ content, at: (i * 7_919) % memoriesCount }))
    .sort((a, b) => a.at - b.at)
    .map(({ content }) => newMemory({ content }, { now: Date.now() }));
  const nothingElse = { userId: null, forgotten: [], share: 0, acceptedAt: Infinity };
  await database.write((tx) => memories.keep(tx, [{ ...agent, remembered, ...nothingElse }]));
  const asked: Asked[] = [];
  for (const question of questions) asked.push(await ask(memories, question));
  tell(asked, name);
  return [
    ...figuresOf(
      `${name}, questions to tune on`,
      asked.filter((_, i) => i % 2 === 0),
    ),
    ...figuresOf(
      `${name}, questions held out`,
      asked.filter((_, i) => i % 2 === 1),
    ),
  ];
}

async function ask(memories: Memories, question: Question): Promise<Asked> {
  const page = { limit: 50, offset: 0 };
  const { memories: found } = await memories.list(agent, { q: question.text }, page);
  return { ...question, place: found.findIndex((one) => one.content === question.memory) + 1 };
}

function questionsOf(): Question[] {
  return Object.entries(texts).flatMap(([language, { pairs }]) =>
    pairs
      .trim()
      .split('\n')
      .map((line) => {
        const [memory = '', text = ''] = line.split(' | ');
        return { language, memory, text };
      }),
  );
}

/** Memories that share names and words with those that are asked for. */
function distractors(questions: number): string[] {
  const languages = Object.values(texts);
  return Array.from({ length: memoriesCount - questions }, (_, i) => {
    const { templates, names, a, b } = languages[i % languages.length] as (typeof languages)[0];
    const n = Math.floor(i / languages.length);
    const pick = (list: readonly string[], by: number) => list[by % list.length] ?? '';
    return pick(templates, n)
      .replace('{n}', pick(names.split(','), n * 5 + 1))
      .replace('{a}', pick(a.split(','), n * 7 + 3))
      .replace('{b}', pick(b.split(','), n * 3 + Math.floor(n / 8)));
  });
}

function figuresOf(name: string, asked: readonly Asked[]): Figure[] {
  const part = (sum: (place: number) => number) =>
    asked.reduce((all, { place }) => all + sum(place), 0) / asked.length;
  const recall = part((place) => (place > 0 && place <= placesMax ? 1 : 0));
  const mrr = part((place) => (place === 0 ? 0 : 1 / place));
  const figure = (what: string, value: number, bounds: { floor: number; goal: number }) => ({
    name: `${what}, ${name}`,
    value,
    shown: `${round(value)}`,
    ...{ ...bounds, unit: '', better: 'more' as const },
  });
  return [
    figure('recall@5', recall, { floor: 0.85, goal: 0.95 }),
    figure('MRR', mrr, { floor: 0.7, goal: 0.85 }),
  ];
}

/** By language, and the questions to tune on that missed. */
function tell(asked: readonly Asked[], name: string): void {
  const found = (of: readonly Asked[]) =>
    of.filter(({ place }) => place > 0 && place <= placesMax).length;
  const byLanguage = [...Map.groupBy(asked, ({ language }) => language)];
  const parts = byLanguage.map(([language, of]) => `${language} ${found(of)}/${of.length}`);
  console.log(`${name}: ${parts.join(', ')}`);
  for (const [i, { text, place }] of asked.entries()) {
    if (i % 2 === 0 && (place === 0 || place > placesMax)) console.log(`  ${place}: ${text}`);
  }
}
