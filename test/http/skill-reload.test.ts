import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { embeddedTest, type Platform, startPlatform } from '../support/platform.ts';
import { gate, play, stagedSkills } from '../support/staged.ts';
import { waitFor } from '../support/wait-for.ts';

const greet = 'text/v1.0/greet';

const directory = mkdtempSync(join(tmpdir(), 'skillwright-reload-'));
const file = join(directory, 'greet.ts');
let platform: Platform;
let key: string;

/** Writes `greet` anew. */
function write(greeting: string, properties: object = { name: {} }, required: string[] = []) {
  writeFileSync(
    file,
    `export default { category: 'text', name: 'greet', version: 'v1.0',
      displayName: 'Greet', description: 'Greets.',
      parameters: ${JSON.stringify({ type: 'object', properties, required })},
      output: { type: 'object', properties: { text: { type: 'string' } } },
      run: () => ({ text: ${JSON.stringify(greeting)} }) };`,
  );
}

const reload = () => platform.admin('POST', '/admin/skills/reload');
/** The state after a reload; earlier sets of skills may still be ending. */
const reloaded = () =>
  waitFor(
    async () => {
      const { status, body } = await reload();
      return status === 200 ? body : null;
    },
    { describe: 'the skills are reloaded' },
  );
const textOf = async () => (await platform.run(key, greet, {})).body.output.text;

/** The state before each test: `greet` says Hello. */
async function begin() {
  write('Hello');
  expect((await reload()).status).toBe(200);
}

beforeAll(async () => {
  write('Hello');
  platform = await startPlatform({ skillsDirs: [...stagedSkills, directory], executors: 'own' });
  key = await platform.key();
});
afterAll(async () => {
  await platform.stop();
  rmSync(directory, { recursive: true });
});

test('a reload gives new runs the new code, and a run that has begun ends with the old', async () => {
  expect((await platform.admin('GET', '/admin/skills/reload')).body).toMatchObject({
    status: 'none',
    processes: [],
  });
  const held = gate();
  const begun = await platform.request('POST', `/api/${play}`, {
    key,
    body: { attempts: [[{ until: held.path }]] },
  });
  await platform.jobIn(key, begun.body.job_id, 'active');
  expect(await textOf()).toBe('Hello');

  write('Welcome', { name: {}, loud: { type: 'boolean' } });
  writeFileSync(join(directory, 'more.ts'), more);
  const answer = await reload();

  expect(answer.status).toBe(200);
  expect(answer.body).toMatchObject({
    status: 'reloaded',
    trigger: 'request',
    added: ['text/v1.0/more'],
    changed: [greet],
    removed: [],
    processes: [{ status: 'reloaded' }],
  });
  expect(await textOf()).toBe('Welcome');
  expect((await platform.run(key, 'text/v1.0/more', {})).body.output).toEqual({});
  held.open();
  const ended = await platform.jobIn(key, begun.body.job_id, 'completed', 'failed');
  expect(ended.body).toMatchObject({ status: 'completed', attempt: 1 });
});

const more = `export default { category: 'text', name: 'more', version: 'v1.0', displayName: 'More',
    description: 'More.', parameters: {}, output: {}, run: () => ({}) };`;

embeddedTest(
  'a skill that does not load leaves all as it was, and the answer names file, line and reason',
  async () => {
    await begin();

    writeFileSync(file, 'const a = 1;\nexport default { category: a b };');
    const answer = await reload();

    expect(answer.status).toBe(409);
    expect(answer.body.message).toContain(`${file}: cannot be loaded: `);
    const state = await platform.admin('GET', '/admin/skills/reload');
    expect(state.body).toMatchObject({ status: 'refused', file, line: 2, faults: [] });
    expect(await textOf()).toBe('Hello');
  },
);

test('a version that takes less than before is refused with the difference', async () => {
  await begin();

  write('Welcome', { name: {} }, ['name']);
  const answer = await reload();

  expect(answer).toMatchObject({
    status: 409,
    body: { details: [{ field: greet, issue: 'input.name is now required' }] },
  });
  const state = await platform.admin('GET', '/admin/skills/reload');
  expect(state.body).toMatchObject({
    status: 'refused',
    file,
    differences: [{ skill: greet, difference: 'input.name is now required' }],
  });
  expect(await textOf()).toBe('Hello');
});

embeddedTest(
  'a reload names the skills whose code has changed, also that of a module which they import',
  async () => {
    await begin();
    const helper = join(directory, '_helper.ts');
    writeFileSync(helper, `export const text = 'One';`);
    const before = readFileSync(file, 'utf8');
    const importing = before.replace(/"Hello"/, 'text');
    writeFileSync(file, `import { text } from './_helper.ts';\n${importing}`);
    expect(await reloaded()).toMatchObject({ changed: [greet] });
    expect(await reloaded()).toMatchObject({ changed: [] });

    writeFileSync(helper, `export const text = 'Two';`);

    expect(await reloaded()).toMatchObject({ changed: [greet], added: [], removed: [] });
    expect(await textOf()).toBe('Two');
  },
);

test('no job is lost or run twice while the skills are reloaded under load', async () => {
  await begin();
  const accepted: string[] = [];
  const counter = { isOver: false };
  const load = (async () => {
    while (!counter.isOver) {
      const answers = await Promise.all(
        Array.from({ length: 10 }, () =>
          platform.request('POST', `/api/${greet}`, { key, body: {} }),
        ),
      );
      for (const { status, body } of answers) {
        expect(status).toBe(202);
        accepted.push(body.job_id);
      }
    }
  })();

  const first = await waitFor(() => accepted[0], { describe: () => 'a job is accepted' });
  await platform.jobIn(key, first, 'completed');
  for (const greeting of ['One', 'Two', 'Three']) {
    write(greeting);
    expect((await reload()).status).toBe(200);
  }
  counter.isOver = true;
  await load;

  const texts = new Set<string>();
  for (const id of accepted) {
    const { body } = await platform.jobIn(key, id, 'completed', 'failed', 'cancelled');
    expect(body).toMatchObject({ status: 'completed', attempt: 1 });
    texts.add(body.output.text);
  }
  expect(accepted.length).toBeGreaterThan(20);
  expect([...texts]).toContain('Hello');
});

embeddedTest(
  'two earlier sets with runs are the most: a further reload is refused until one has ended',
  async () => {
    await begin();
    const held = [gate(), gate()];
    const jobs: string[] = [];
    for (const { path } of held) {
      const begun = await platform.request('POST', `/api/${play}`, {
        key,
        body: { attempts: [[{ until: path }]] },
      });
      await platform.jobIn(key, begun.body.job_id, 'active');
      jobs.push(begun.body.job_id);
      expect((await reload()).status).toBe(200);
    }

    const third = await reload();

    expect(third.body.message).toContain('two earlier sets of skills still finish their runs');
    for (const { open } of held) open();
    for (const id of jobs) await platform.jobIn(key, id, 'completed');
  },
);

test('a reload needs the admin secret', async () => {
  expect((await platform.request('POST', '/admin/skills/reload')).status).toBe(401);
});
