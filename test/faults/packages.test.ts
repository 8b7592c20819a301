/** The packages, in a folder with nothing but them: what an author and an operator get from npm. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  globSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { checkTypes, loadedBy } from '../support/author-types.ts';
import {
  type InstalledPackages,
  installPackages,
  readPacked,
} from '../support/installed-packages.ts';
import { firstLines, Newcomer } from '../support/newcomer.ts';
import { adminSecret, clientOf } from '../support/platform.ts';
import { startProcess } from '../support/process.ts';
import { startRegistry } from '../support/registry.ts';
import { newTenant } from '../support/tenant.ts';
import { waitFor } from '../support/wait-for.ts';

/** Whether a package that is not of the same commit demands a Node of its own. */
const bounds = ({ name, engines }: Record<string, unknown>) =>
  engines !== undefined && name !== '@skillwright/client';

interface Locked {
  readonly version?: string;
}

const root = join(import.meta.dirname, '../..');
/** A Node that cannot become another process, as those before 22.15. */
const withoutExecve = '--import=data:text/javascript,process.execve=undefined';

let installed: InstalledPackages;
beforeAll(async () => {
  installed = await installPackages();
  const made = await installed.run(process.execPath, [installed.command, 'init', 'my-skills']);
  expect(made).toMatchObject({ code: 0, stderr: '' });
}, 600_000);
afterAll(() => installed?.remove());

test('hold compiled code with its types, a licence and a README, and nothing that only tests need', () => {
  const client = join(installed.directory, 'node_modules/@skillwright/client');
  for (const folder of [installed.platform, client]) {
    const files = globSync('**/*', { cwd: folder, exclude: ['node_modules/**', '.cache/**'] });
    expect(files).toEqual(expect.arrayContaining(['package.json', 'README.md', 'LICENSE']));
    const misplaced =
      /(?<!\.d)\.ts$|\.test\.|(?:^|\/)(?:test|bench|scripts|fixtures)\/|\.pem$|\.map$|key$/;
    const ours = files.filter((file) => !file.startsWith('templates/'));
    expect(ours.filter((file) => misplaced.test(file))).toEqual([]);
    const texts = ours.filter((file) => /\.(?:js|json|md|html|txt)$/.test(file));
    const hasKey = (file: string) =>
      /BEGIN[A-Z ]* PRIVATE KEY/.test(readFileSync(join(folder, file), 'utf8'));
    expect(texts.filter(hasKey)).toEqual([]);
    const manifest = readPacked(folder);
    const publishConfig = { access: 'public', provenance: true };
    expect(manifest).toMatchObject({ version: '0.1.0', license: 'MIT', publishConfig });
    expect(manifest).not.toHaveProperty('devDependencies');
    expect(manifest).not.toHaveProperty('scripts');
  }
  expect(readPacked(client)).not.toHaveProperty('dependencies');
  const licences = ['inter-license.txt', 'licenses.md', 'lucide-license.txt'];
  const options = { cwd: join(installed.platform, 'console/dist') };
  expect(globSync('*licen*', options).sort()).toEqual(licences);
});

test('the first lines of the README work in an empty folder, with a registry of the packages', async () => {
  const registry = await startRegistry(join(root, 'dist-packages'));
  const newcomer = new Newcomer(registry.url);
  onTestFinished(() => {
    registry.close();
    newcomer.leave();
  });
  const [trying = '', installing = '', own = ''] = firstLines();

  await newcomer.interrupt(await newcomer.start(trying));
  const [code] = await once(newcomer.type(installing), 'close');
  expect(code).toBe(0);
  const platform = await newcomer.start(own);
  expect(await newcomer.shout()).toMatchObject({ status: 'completed', output: { text: 'READY' } });
  await newcomer.interrupt(platform);
}, 240_000);

test('an installation takes less than 200 MB in less than 1,500 files', () => {
  const files = globSync('node_modules/**/*', { cwd: installed.directory, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.parentPath.includes('/.cache'))
    .map((entry) => statSync(join(entry.parentPath, entry.name)).size);

  expect(files.length).toBeLessThan(1_500);
  expect(files.reduce((sum, size) => sum + size)).toBeLessThan(200_000_000);
});

test('bring along what they need, in the versions that the tests of the checkout run with', async () => {
  const { packages } = readPacked(root, 'package-lock.json') as {
    packages: Record<string, Locked>;
  };
  const places = globSync('**/node_modules/{*,@*/*}/package.json', { cwd: installed.platform });
  const brought = places.map((file) => {
    const { version } = readPacked(join(installed.platform, dirname(file)));
    return [dirname(file), version];
  });
  const locked = brought.map(([place]) => [place, packages[`${place}`]?.version ?? '0.1.0']);

  // All others are in the files of the program.
  expect(brought.map(([place]) => place)).toEqual(expect.arrayContaining(['node_modules/ajv']));
  expect(brought.length).toBeLessThan(20);
  expect(brought).toEqual(locked);
  const licenses = readFileSync(join(installed.platform, 'dist/licenses.txt'), 'utf8');
  for (const name of ['fastify', 'bullmq', 'mammoth']) {
    expect(licenses).toMatch(new RegExp(`^${name} \\d+\\.\\d+\\.\\d+ \\([\\w-]+\\)$`, 'm'));
  }
  // Else npm on Node 20 warns of each, though none of them runs on it.
  const manifests = places.map((file) => readPacked(join(installed.platform, dirname(file))));
  expect(manifests.filter((manifest) => bounds(manifest))).toEqual([]);
  const modules = join(installed.directory, 'node_modules');
  const besideIt = readdirSync(modules).filter((name) => !name.startsWith('.'));
  expect(besideIt.sort()).toEqual(['@skillwright', 'skillwright']);
  const runtime = `node-${process.platform}-${process.arch}`;
  expect(readdirSync(join(modules, '@skillwright')).sort()).toEqual(['client', runtime]);
  const alone = globSync('**/*.*', { cwd: join(modules, '@skillwright', runtime) });
  expect(alone).toEqual(['package.json']);
  // npm would name what is missing, or of another version than a package asks for.
  const listed = await installed.run('npm', ['ls', '--all']);
  expect(listed.code, listed.stderr).toBe(0);
});

test('the Node that it brings is the one of the checkout, without its symbols', async () => {
  const runtime = `node-${process.platform}-${process.arch}`;
  const program = join(installed.directory, 'node_modules/@skillwright', runtime, 'bin/node');
  const { stdout } = await installed.run(program, ['--version']);

  expect(stdout.trim()).toBe(process.version);
  expect(statSync(program).size).toBeLessThan(125_000_000);
});

test('without its Node, on one that is too old, the command says what to do', async () => {
  const command = installed.write(
    'alone/bin/skillwright.js',
    readFileSync(join(root, 'bin/skillwright.js'), 'utf8'),
  );
  installed.write('alone/package.json', '{"type":"module"}');
  // As if no package of the runtime fitted this system.
  const pretend = `Object.defineProperty(process.versions, 'node', { value: '20.0.0' });
    Object.defineProperty(process, 'arch', { value: 'none' });`;
  const flag = `--import=data:text/javascript,${encodeURIComponent(pretend)}`;

  const { code, stderr } = await installed.run(process.execPath, [flag, command]);

  expect(code).toBe(1);
  expect(stderr).toMatch(/^Skillwright needs Node 26 or newer.*install it again.*\n$/);
});

test("import 'skillwright' loads two small modules and nothing else", async () => {
  const { loaded, exports } = await loadedBy(installed, 'skillwright');

  expect(exports).toEqual(['SkillError', 'defineSkill']);
  expect(loaded.map((url) => url.slice(url.indexOf('/skillwright/')))).toEqual([
    '/skillwright/src/author.js',
    expect.stringMatching(/^\/skillwright\/src\/chunks\/definition-[\w-]+\.js$/),
  ]);
});

test('stack traces name the sources', async () => {
  const url = pathToFileURL(join(installed.platform, 'src/apps/cli/main.js')).href;
  const program = `process.argv = [...process.argv.slice(0, 1), '', '--version'];
    await import(${JSON.stringify(url)});
    const { SkillError } = await import('skillwright');
    const options = { get retryable() { throw new Error('traced') } };
    try { new SkillError('', options) } catch (error) { console.log(error.stack) }`;
  const { stdout } = await installed.run(process.execPath, ['--input-type=module', '-e', program]);

  const [, line] = /src\/core\/skills\/definition\.ts:(\d+):/.exec(stdout) ?? [];
  const source = readFileSync(join(root, 'src/core/skills/definition.ts'), 'utf8').split('\n');
  expect(source[Number(line) - 1], stdout).toContain('retryable');
});

test('the types of both packages compile under a strict configuration of an author', async () => {
  expect(await checkTypes(installed)).toEqual({ code: 0, stdout: '' });
});

const project = () => join(installed.directory, 'my-skills');

test('a project of skillwright init passes its tests and its check of types', async () => {
  const manifest = readPacked(project());
  expect(manifest).toMatchObject({
    dependencies: { skillwright: expect.stringMatching(/^file:.*skillwright-0\.1\.0\.tgz$/) },
  });

  // The packages of the folder above stand for those that npm would install again.
  const tested = await installed.run('npm', ['--prefix', 'my-skills', 'test']);
  const tsc = join(root, 'node_modules/.bin/tsc');
  const types = ['-p', 'my-skills', '--typeRoots', join(root, 'node_modules/@types')];
  const checked = await installed.run(process.execPath, [tsc, ...types]);

  expect(tested).toMatchObject({ code: 0, stdout: /1 passed, 0 failed, 0 skipped/ });
  expect(checked).toMatchObject({ code: 0, stdout: '' });
});

/** Skills in a folder without any package beside it. */
function skills(): string {
  const directory = mkdtempSync(join(tmpdir(), 'skillwright-skills-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const skill = (name: string, type: string) =>
    `import { defineSkill, SkillError } from 'skillwright';
     export default defineSkill({
       category: 'own', name: '${name}', version: 'v1.0', displayName: 'Own', description: 'Own.',
       parameters: { type: 'object' }, output: { type: 'object' },
       run({ text }${type}) {
         if (text === '') throw new SkillError('no text', { retryable: false });
         return { text: text.toUpperCase() };
       },
     });`;
  writeFileSync(join(directory, 'package.json'), '{"type":"module"}');
  writeFileSync(join(directory, 'typed.ts'), skill('typed', ': { text: string }'));
  writeFileSync(join(directory, 'plain.js'), skill('plain', ''));
  return directory;
}

test('the command starts the platform, which runs skills, shows the console and drains at SIGTERM', async () => {
  const dataDir = join(installed.directory, 'elsewhere');
  const platform = await startProcess(
    dataDir,
    { EXECUTORS: '1', SKILLS_DIR: skills(), HOME: installed.directory },
    installed.command,
  );
  onTestFinished(() => platform.signal('SIGKILL'));
  const tenant = await newTenant(platform);
  const text = async (path: string) => {
    const response = await fetch(`${platform.url}${path}`);
    return { status: response.status, text: await response.text() };
  };

  expect(await platform.request('GET', '/health')).toMatchObject({
    status: 200,
    body: { status: 'ok', version: '0.1.0' },
  });
  const page = await text('/console/');
  const [script = ''] = /assets\/[\w-]+\.js/.exec(page.text) ?? [];
  expect(await text(`/console/${script}`)).toMatchObject({ status: 200 });
  expect((await text('/docs/scalar.js')).text.length).toBeGreaterThan(1_000_000);
  const guide = await text('/docs/guide/start');
  expect(guide).toMatchObject({ status: 200, text: expect.stringContaining('Start a platform') });
  const [style = ''] = /assets\/style\.[\w-]+\.css/.exec(guide.text) ?? [];
  expect(await text(`/docs/guide/${style}`)).toMatchObject({ status: 200 });
  for (const [skill, input, output] of [
    ['own/v1.0/typed', { text: 'a' }, { text: 'A' }],
    ['own/v1.0/plain', { text: 'b' }, { text: 'B' }],
    // In sandboxed processes, which read compiled modules and libraries.
    ['text/v1.0/render-template', { template: '{{ a }}', data: { a: 1 } }, { text: '1' }],
    ['data/v1.0/query-json', { expression: 'a + 1', data: { a: 1 } }, { result: 2, found: true }],
  ] as const) {
    const { body } = await tenant.run(skill, input);
    expect(body, skill).toMatchObject({ status: 'completed', output });
  }
  const refused = await tenant.run('own/v1.0/plain', { text: '' });
  expect(refused.body).toMatchObject({
    status: 'failed',
    attempt: 1,
    error: { message: 'no text' },
  });
  const env = { SKILLWRIGHT_URL: platform.url, SKILLWRIGHT_API_KEY: tenant.key };
  const args = [installed.command, 'run', 'own/v1.0/typed', '{"text":"c"}'];
  const called = await installed.run(process.execPath, args, env);
  expect(called).toEqual({ code: 0, stdout: '{"text":"C"}\n', stderr: '' });

  const jobId = await tenant.start('util/v1.0/wait', { ms: 1_000 });
  await tenant.jobIn(jobId, 'active');
  platform.signal('SIGTERM');

  expect(await platform.exit).toEqual({ code: 0, signal: null });
  const store = new DatabaseSync(join(dataDir, 'skillwright.db'), { readOnly: true });
  onTestFinished(() => store.close());
  const { status } = store.prepare('SELECT status FROM jobs WHERE id = ?').get(jobId) ?? {};
  expect(status).toBe('completed');
  expect(platform.output()).not.toMatch(/"level":(?:50|60)/);
});

test('Ctrl-C in a terminal lets it end in its own time, with code 0', async () => {
  const child = spawn('script', ['-qec', `exec '${installed.command}'`, '/dev/null'], {
    cwd: mkdtempSync(join(installed.directory, 'with spaces ä ')),
    env: {
      ...{ PATH: process.env['PATH'], HOME: installed.directory, TERM: 'xterm', SHELL: '/bin/sh' },
      ...{ PORT: '0', ADMIN_SECRET: adminSecret, EXECUTORS: '1' },
    },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const exit = once(child, 'exit');
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  await waitFor(() => output.includes('is ready'), {
    describe: () => `the platform is ready; it said: ${output}`,
    deadlineMs: 60_000,
  });

  child.stdin.write('\x03');

  expect(await exit).toEqual([0, null]);
  expect(output).toMatch(/ stopping\r?\n/);
});

/** Starts a command that starts the platform, as a person does in a folder. */
async function startWith(command: string, args: readonly string[], cwd: string) {
  const child = spawn(command, args, {
    cwd,
    env: {
      ...{ PATH: process.env['PATH'], HOME: installed.directory, NODE_OPTIONS: withoutExecve },
      ...{ PORT: '0', ADMIN_SECRET: adminSecret, EXECUTORS: '1' },
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  const pattern = /"pid":(\d+),"address":"([^"]+)"/;
  const [, pid = '', url = ''] = await waitFor(() => pattern.exec(output), {
    describe: () => `the platform is ready; it said: ${output}`,
    deadlineMs: 120_000,
  });
  return {
    url,
    /** Ends the command alone, as a terminal or a supervisor does. */
    async end() {
      child.kill('SIGTERM');
      await waitFor(() => !isRunning(Number(pid)), { describe: 'the platform has ended' });
      expect(output).toContain('"msg":"stopping"');
    },
  };
}

test('npx starts it with its data in that folder, and takes it along when it ends', async () => {
  const { url, end } = await startWith('npx', ['skillwright'], installed.directory);
  expect((await fetch(`${url}/health`)).status).toBe(200);
  expect(readFileSync(join(installed.directory, 'data/skillwright.db')).length).toBeGreaterThan(0);

  await end();
});

test('a project that init made runs its skills with npm run dev', async () => {
  const { url, end } = await startWith('npm', ['run', 'dev'], project());
  const client = clientOf(url);
  const key = await client.key();

  const { body } = await client.run(key, 'examples/v1.0/greeting', { name: 'Ada' });
  expect(body).toMatchObject({ status: 'completed', output: { greeting: 'Hello, Ada!' } });

  await end();
});

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
