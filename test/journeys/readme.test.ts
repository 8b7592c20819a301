/**
 * The README is executed as it is written: its journey by bash, with the address of a platform that
 * was started as the README says, in a directory of its own.
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { SkillDefinition } from '../../src/skills/definition.ts';
import { type PlatformProcess, startProcess } from '../support/process.ts';
import { callingTools, startScriptedProvider } from '../support/scripted-provider.ts';
import { newTenant } from '../support/tenant.ts';
import { waitFor } from '../support/wait-for.ts';

const root = join(import.meta.dirname, '../..');
const readme = readFileSync(join(root, 'README.md'), 'utf8');

/** The shell blocks of a section. */
function blocksOf(title: string): string[] {
  const section = readme.split(/^## /m).find((text) => text.startsWith(`${title}\n`));
  if (section === undefined) throw new Error(`The README has no section ${title}`);
  return [...section.matchAll(/^```sh\n(.*?)^```/gms)].map(([, code]) => code as string);
}

/** The module that the first screen shows. */
function firstSkill(): string {
  const [, code] = /^```ts\n(.*?)^```/ms.exec(readme) ?? expect.fail('The README shows no skill');
  return code as string;
}

let directory: string;
let platform: PlatformProcess;
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'skillwright-readme-'));
  platform = await startProcess(join(directory, 'data'), { ADMIN_SECRET: undefined });
});
afterAll(async () => {
  await platform.stop();
  rmSync(directory, { recursive: true, force: true });
});

/** Runs shell code where `data` is, with a platform's address; what each step printed. */
async function steps(code: string, url = platform.url, variables = {}): Promise<string[]> {
  expect(code).toContain('http://127.0.0.1:3000');
  const marked = code
    .replaceAll('http://127.0.0.1:3000', url)
    .replace(/^# (\d+)\./gm, "echo; echo 'step $1'; # $1.");
  const { stdout, stderr } = await promisify(execFile)(
    'bash',
    ['--norc', '-euo', 'pipefail', '-c', marked],
    {
      cwd: directory,
      env: { ...process.env, ...variables },
    },
  );
  expect(stderr).toBe('');
  return stdout.split(/^step \d+$/m).map((text) => text.trim());
}

describe('the quickstart of the README', () => {
  test('goes from a key to a conversation', async () => {
    const [code = ''] = blocksOf('Quickstart');

    const [, key, skills, accepted, job, conversations] = await steps(code);

    expect(key).toBe('');
    const names = JSON.parse(skills ?? '').map((skill: { skill_name: string }) => skill.skill_name);
    expect(names).toContain('word-count');
    expect(accepted).toMatch(/^HTTP\/1\.1 202 Accepted/);
    expect(accepted).toMatch(/^location: \/api\/jobs\/[0-9a-f-]{36}/im);
    expect(JSON.parse(job ?? '')).toMatchObject({
      status: 'completed',
      output: expect.objectContaining({ words: 2 }),
    });
    expect(JSON.parse(conversations ?? '')).toHaveLength(2);
  });

  test('leads to documentation that exists', async () => {
    for (const path of ['/docs', '/openapi.json']) {
      expect(readme).toContain(path);
      expect((await platform.request('GET', path)).status).toBe(200);
    }
  });
});

/** Runs shell code until it, or what it has started, prints `awaited`; all that was printed. */
async function printedBy(code: string, url: string, awaited: string): Promise<string> {
  const receiver = `https://127.0.0.1:${await freePort()}`;
  const moved = code
    .replaceAll('data/admin-secret', 'again/data/admin-secret')
    .replaceAll('http://127.0.0.1:3000', url)
    .replaceAll('https://127.0.0.1:8443', receiver)
    .replaceAll('PORT=8443', `PORT=${new URL(receiver).port}`)
    .replaceAll('examples/', `${join(root, 'examples')}/`);
  // In a group of its own, so that what runs in the background ends with it.
  const shell = spawn('bash', ['--norc', '-euo', 'pipefail', '-c', `${moved}\nwait`], {
    cwd: directory,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let printed = '';
  for (const stream of [shell.stdout, shell.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      printed += text;
    });
  }
  try {
    await waitFor(() => printed.includes(awaited), {
      describe: () => `${awaited} is printed; at last there was: ${printed.slice(-2_000)}`,
      deadlineMs: 30_000,
    });
  } finally {
    process.kill(-(shell.pid as number));
  }
  return printed;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

describe('the quickstart continues', () => {
  test('to a schedule whose run sends a signed webhook', async () => {
    const [first = '', restart = '', second = ''] = blocksOf('Quickstart');
    const [, certificate, variables] =
      /^(openssl .*?)^(\S.*) npm start\n$/ms.exec(restart) ?? expect.fail('It starts no platform');
    await promisify(execFile)('bash', ['--norc', '-euc', certificate as string], {
      cwd: directory,
    });
    const own = await startProcess(join(directory, 'again/data'), {
      ...Object.fromEntries((variables as string).split(' ').map((text) => text.split('='))),
      NODE_EXTRA_CA_CERTS: join(directory, 'cert.pem'),
      ADMIN_SECRET: undefined,
    });
    onTestFinished(() => own.stop());

    const printed = await printedBy(`${first}\n${second}`, own.url, 'of agent default: {');

    expect(
      JSON.parse(/scheduled_job\.completed of agent default: (.*)/.exec(printed)?.[1] ?? ''),
    ).toMatchObject({
      skill_category: 'text',
      skill_name: 'word-count',
      duration_ms: expect.any(Number),
    });
  });
});

describe('an agent that thinks', () => {
  test('makes an agent, gives it a budget and a task, follows it, and shows what it cost', async () => {
    const provider = await startScriptedProvider({
      script: callingTools(
        [{ name: 'text__word-count__v1_0', input: { text: 'The harbour is closed on Mondays.' } }],
        'It has six words.',
      ),
    });
    onTestFinished(() => provider.close());
    const [start = '', code = ''] = blocksOf('An agent that thinks');
    const [, variables = ''] = /^(\S+=.*) npm start$/m.exec(start) ?? [];
    const own = await startProcess(join(directory, 'thinking'), {
      ...Object.fromEntries(variables.split(' ').map((text) => text.split('='))),
      OLLAMA_BASE_URL: provider.openaiBaseUrl,
    });
    onTestFinished(() => own.stop());

    const [, agent, budget, accepted, stream, usage] = await steps(code, own.url, {
      KEY: await own.key(),
    });

    expect(JSON.parse(agent ?? '')).toMatchObject({ id: 'reader' });
    expect(JSON.parse(budget ?? '')).toMatchObject({ tokens_per_day: 50_000 });
    expect(accepted).toBe('');
    for (const type of ['tool_call', 'tool_result', 'token', 'message']) {
      expect(stream).toContain(`event: ${type}\n`);
    }
    expect(stream).toContain('"content":"It has six words."');
    expect(JSON.parse(usage ?? '').today).toMatchObject({ limit: 50_000, reserved: 0 });
    expect(provider.requests.map(({ model }) => model)).toEqual(['qwen3', 'qwen3']);
  });
});

describe('the skills to copy', () => {
  test('run as their examples say, when the platform is started as the README says', async () => {
    const [command = ''] = blocksOf('Your own skills');
    const path = /^SKILLS_DIR=(\S+) npm start$/m.exec(command)?.[1] as string;
    // Those that wait are run by durable-examples.test.ts.
    const files = globSync('**/*.{ts,js}', { cwd: join(root, path), exclude: ['durable'] });
    expect(files.length).toBeGreaterThanOrEqual(2);
    const skills = join(directory, 'skills');
    cpSync(join(root, path), skills, { recursive: true });
    writeFileSync(join(skills, 'shout.ts'), firstSkill());
    const own = await startProcess(join(directory, 'own'), {
      SKILLS_DIR: skills,
      // The setting that one of them requires.
      SIGNING_KEY: 'a key of at least 16 characters',
    });
    const tenant = await newTenant(own);

    const shout = await tenant.run('text/v1.0/shout', { text: 'ready' });
    expect(shout.body).toMatchObject({ status: 'completed', output: { text: 'READY' } });
    for (const file of files) {
      const module = (await import(join(root, path, file))) as { default: SkillDefinition };
      const { category, version, name, examples = [] } = module.default;
      expect(examples.length, file).toBeGreaterThanOrEqual(1);
      for (const { input, output } of examples) {
        const { body } = await tenant.run(`${category}/${version}/${name}`, input);
        expect(body).toMatchObject({ status: 'completed', error: null });
        if (output !== undefined) expect(body.output).toEqual(output);
      }
    }
    await own.stop();
  });
});
