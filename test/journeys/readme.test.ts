/**
 * The README is executed as it is written: its journey by bash, with the address of a platform that
 * was started as the README says, in a directory of its own.
 */
import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { SkillDefinition } from '../../src/core/skills/definition.ts';
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

/** What the commands of the README are given: the platform's address, and a place for their profiles. */
const environmentOf = (url: string) => ({
  ...process.env,
  SKILLWRIGHT_URL: url,
  XDG_CONFIG_HOME: directory,
});

/** The code of the README, for a platform at `url`, run outside of the checkout. */
function moved(code: string, url: string): string {
  return code
    .replaceAll('http://127.0.0.1:3000', url)
    .replaceAll('./skillwright ', `${join(root, 'skillwright')} `)
    .replaceAll('examples/', `${join(root, 'examples')}/`);
}

/** Runs shell code where `data` is, with a platform's address; what each step printed. */
async function steps(code: string, url = platform.url, variables = {}): Promise<string[]> {
  const marked = moved(code, url).replace(/^# (\d+)\./gm, "echo; echo 'step $1'; # $1.");
  const { stdout } = await promisify(execFile)(
    'bash',
    ['--norc', '-euo', 'pipefail', '-c', marked],
    { cwd: directory, env: { ...environmentOf(url), ...variables } },
  );
  return stdout.split(/^step \d+$/m).map((text) => text.trim());
}

describe('the quickstart of the README', () => {
  test('goes from a key to a schedule with the command line, and to a conversation with curl', async () => {
    const [commands = '', calls = ''] = blocksOf('Quickstart');

    const printed = await steps(`${commands}\n${calls}`);

    const [, key, skills, output, schedule, ofCurl, accepted, job, conversations] = printed;
    expect(key).toMatch(/^plaintext_key\tsk_/);
    expect(skills).toContain('text/v1.0/word-count\t');
    expect(JSON.parse(output ?? '')).toMatchObject({ words: 2 });
    expect(schedule).toContain('cron_expression\t0 9 * * MON-FRI');
    expect(ofCurl).toBe('');
    expect(accepted).toMatch(/^HTTP\/1\.1 202 Accepted/);
    expect(accepted).toMatch(/^location: \/api\/jobs\/[0-9a-f-]{36}/im);
    expect(JSON.parse(job ?? '')).toMatchObject({
      status: 'completed',
      output: expect.objectContaining({ words: 2 }),
    });
    expect(JSON.parse(conversations ?? '').length).toBeGreaterThanOrEqual(3);
  });

  test('brings signed webhooks to this machine', async () => {
    const [commands = '', , receive = ''] = blocksOf('Quickstart');
    await steps(commands.split('# 2.')[0] as string);
    const port = String(await freePort());
    const receiving = receive
      .replaceAll('PORT=8080', `PORT=${port}`)
      .replaceAll(':8080', `:${port}`);
    const { stop, printed } = startShell(receiving);
    onTestFinished(stop);
    await waitFor(() => printed().includes('Forwarding '), {
      describe: () => `the command listens; it printed: ${printed().slice(-2_000)}`,
      deadlineMs: 30_000,
    });

    await steps("./skillwright run text/v1.0/word-count text='Hello, world'");

    await waitFor(() => printed().includes('skill.completed of agent default: {'), {
      describe: () =>
        `the receiver prints the event; at last there was: ${printed().slice(-2_000)}`,
      deadlineMs: 30_000,
    });
  });

  test('leads to documentation that exists', async () => {
    for (const path of ['/docs', '/openapi.json']) {
      expect(readme).toContain(path);
      expect((await platform.request('GET', path)).status).toBe(200);
    }
  });
});

/** Shell code in a process group of its own, so that what runs in the background ends with it. */
function startShell(code: string) {
  const shell = spawn('bash', ['--norc', '-euo', 'pipefail', '-c', moved(code, platform.url)], {
    ...{ cwd: directory, detached: true, env: environmentOf(platform.url) },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let printed = '';
  for (const stream of [shell.stdout, shell.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      printed += text;
    });
  }
  const stop = () => void process.kill(-(shell.pid as number));
  return { stop, printed: () => printed };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

describe('an agent that thinks', () => {
  test('is created, given a budget and a task, and its job has the tokens that it used', async () => {
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

    const [, agent, budget, answer, jobs] = await steps(code, own.url, {
      SKILLWRIGHT_API_KEY: await own.key(),
    });

    expect(agent).toContain('id\treader\n');
    expect(budget).toContain('tokens_per_day\t50000');
    expect(answer).toBe('It has six words.');
    expect(jobs).toContain('agent/v1.0/run-task');
    expect(provider.requests.map(({ model }) => model)).toEqual(['qwen3', 'qwen3']);
  });
});

describe('docs/call-it.md', () => {
  test.skipIf(spawnSync('python3', ['--version']).status !== 0)(
    'runs a skill from Python, whose program needs nothing but its standard library',
    async () => {
      const page = readFileSync(join(root, 'docs/call-it.md'), 'utf8');
      const [, program = ''] = /^```python\n(.*?)^```/ms.exec(page) ?? [];
      const [key = ''] = await steps(
        "ADMIN_SECRET=$(cat data/admin-secret) ./skillwright keys create python --scopes '*' --key-only",
      );
      const env = { ...environmentOf(platform.url), SKILLWRIGHT_API_KEY: key };

      const { stdout } = await promisify(execFile)('python3', ['-c', program], { env });

      expect(stdout).toContain("'words': 2");
    },
  );
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
