/** Tasks and tools with more files than the window of their model has room for (docs/files.md). */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { answering, inTurn } from '../support/scripted-provider.ts';
import {
  newThinker,
  startThinkers,
  type Thinker,
  type Thinkers,
  toolNamed,
} from '../support/thinkers.ts';

let world: Thinkers;
beforeAll(async () => {
  world = await startThinkers();
});
afterAll(() => world.stop());

const small = { model_settings: { context_tokens: 20_000, max_output_tokens: 1_000 } };
const picture = (n: number) =>
  Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), Buffer.alloc(50, n)]);
const noRoom = (name: string) =>
  `The file "${name}" is left out: the files of a request are too large together.`;

async function keep(thinker: Thinker, name: string, body: Buffer | string): Promise<string> {
  const headers = { 'content-type': 'application/octet-stream' };
  return (await thinker.send('POST', `/api/files?name=${name}`, { body, headers })).body.id;
}

async function keepPictures(thinker: Thinker, count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let n = 0; n < count; n++) ids.push(await keep(thinker, `${n}.png`, picture(n)));
  return ids;
}

async function give(thinker: Thinker, files: readonly string[], headers = {}) {
  const job = await thinker.task('Sum it up.', { files }, headers);
  const isOver = job.status === 'completed' || job.status === 'failed';
  return isOver ? job : (await thinker.jobIn(job.job_id, 'completed', 'failed')).body;
}

const sent = () => JSON.stringify(world.provider.requests.at(-1)?.body.messages);
const picturesSent = () => sent().split('"image_url":').length - 1;
/** How the last call of a job gave its files, in their order. */
async function givenBy(thinker: Thinker, job: { job_id: string }) {
  const steps = await thinker.steps(job.job_id);
  const files = steps.findLast(({ kind }) => kind === 'model').files as { as: string }[];
  return files.map(({ as }) => as).sort();
}

test('pictures without room are told of in words', async () => {
  const thinker = await newThinker(world.platform, small);
  const files = await keepPictures(thinker, 4);
  world.provider.script(answering('Two pictures.'));

  const job = await give(thinker, files);

  expect(job).toMatchObject({ output: { answer: 'Two pictures.' } });
  expect(picturesSent()).toBe(2);
  expect(await givenBy(thinker, job)).toEqual(['file', 'file', 'note', 'note']);
  expect(sent()).toContain(JSON.stringify(noRoom('3.png')).slice(1, -1));
  const events = await (await thinker.follow(job.job_id)).ended;
  expect(JSON.stringify(events)).toContain('is left out: the files of a request');
});

test('a PDF without room is sent as its text', async () => {
  const settings = { context_tokens: 6_000, max_output_tokens: 1_000 };
  const model = 'anthropic/claude-opus-5';
  const thinker = await newThinker(world.platform, { model, model_settings: settings });
  const report = new URL('../fixtures/documents/report.pdf', import.meta.url);
  world.provider.script(answering('A report.'));

  const job = await give(thinker, [await keep(thinker, 'report.pdf', readFileSync(report))]);

  expect(job).toMatchObject({ output: { answer: 'A report.' } });
  expect(await givenBy(thinker, job)).toEqual(['text']);
  expect(sent()).toContain('The engine weaves');
});

test('texts share the room, so that each has at least its beginning', async () => {
  const thinker = await newThinker(world.platform, small);
  const files: string[] = [];
  for (const n of [1, 2, 3, 4]) {
    files.push(await keep(thinker, `${n}.txt`, `Text ${n}. ${'word '.repeat(20_000)}`));
  }
  files.push(await keep(thinker, 'short.txt', 'All of it.'));
  world.provider.script(answering('Texts.'));

  const job = await give(thinker, files);

  expect(job).toMatchObject({ output: { answer: 'Texts.' } });
  for (const n of [1, 2, 3, 4]) {
    expect(sent()).toContain(`\\"${n}.txt\\" (its beginning):\\n<file>\\nText ${n}. word`);
  }
  expect(sent()).toContain('All of it.');
});

test('a tool may return more pictures than its model can be shown', async () => {
  const thinker = await newThinker(world.platform, { ...small, skills: ['thinking/*'] });
  const skill = 'thinking/v1.0/files';
  const puts = [0, 1, 2, 3].map((n) => ({
    name: `${n}.png`,
    base64: picture(n).toString('base64'),
  }));
  const call = { name: toolNamed(skill), input: { puts } };
  world.provider.script(inTurn({ toolCalls: [call, call] }, { text: 'Drawn.' }));

  const job = await thinker.task('Draw them.');

  expect(job).toMatchObject({ output: { answer: 'Drawn.' } });
  expect(picturesSent()).toBeGreaterThan(0);
  expect(await givenBy(thinker, job)).toContain('note');
});

test('files of earlier messages beyond the newest ten are told of in words', async () => {
  const thinker = await newThinker(world.platform);
  const files = await keepPictures(thinker, 6);
  world.provider.script(answering('Fine.'));
  const { conversation_id } = await give(thinker, files);
  const on = { 'x-conversation-id': conversation_id };
  await give(thinker, files, on);

  await thinker.task('And now?', {}, on);

  expect(picturesSent()).toBe(10);
  expect(sent()).toContain('The file \\"5.png\\" was shown before, and is left out');
  expect(sent()).not.toContain('The file \\"3.png\\" was shown');
});

test('what the mark of a file does not tell is read as text where it can be', async () => {
  const thinker = await newThinker(world.platform);
  const files = [
    await keep(thinker, 'latin.csv', Buffer.from('ort;höhe\nköln;53', 'latin1')),
    await keep(thinker, 'wide.csv', Buffer.from('\uFEFFstraße;1', 'utf16le')),
  ];

  await give(thinker, files);

  expect(sent()).toContain('köln;53');
  expect(sent()).toContain('straße;1');
});

test('a document without text is told of in words', async () => {
  const thinker = await newThinker(world.platform);
  const page = '3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]>>endobj';
  const pages = '2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj';
  const scan = `%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n${pages}\n${page}\ntrailer<</Root 1 0 R>>`;

  await give(thinker, [await keep(thinker, 'scan.pdf', scan)]);

  expect(sent()).toContain('The file \\"scan.pdf\\" cannot be read: it has no text');
});

test('what does not fit is told of with the names of its files and the setting', async () => {
  const settings = { context_tokens: 4_000, max_output_tokens: 1_000 };
  const thinker = await newThinker(world.platform, { model_settings: settings });
  const file = await keep(thinker, 'short.txt', 'All of it.');

  const job = await thinker.task('word '.repeat(4_000), { files: [file] });

  const { message } = job.error;
  expect(message).toContain('with the files ["short.txt"] is longer than its 4000 tokens');
  expect(message).toContain('MODEL_CONTEXT_TOKENS');
});
