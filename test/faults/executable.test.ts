/** The platform of one file, as a user has it: an empty folder, the file, and skills. */
import { execFile, spawnSync } from 'node:child_process';
import {
  copyFileSync,
  cpSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { Finding } from '../../src/apps/cli/findings/finding.ts';
import { executableArguments } from '../../src/kernel/node-program.ts';
import { buildImage } from '../support/image.ts';
import { adminSecret } from '../support/platform.ts';
import { startProcess } from '../support/process.ts';
import { freePort } from '../support/supervised.ts';
import { bootUnits, canBoot } from '../support/systemd.ts';
import { newTenant } from '../support/tenant.ts';
import { waitFor } from '../support/wait-for.ts';

const root = join(import.meta.dirname, '../..');
const name = `skillwright-0.1.0-${process.platform}-${process.arch}`;
const script = (path: string, ...args: string[]) =>
  promisify(execFile)(process.execPath, [join(root, 'scripts', path), ...args]);

const folder = mkdtempSync(join(tmpdir(), 'skillwright-executable-'));
const out = join(folder, 'out');
/** A file of the user, and one of a newer version. */
const file = join(folder, 'skillwright');
const newer = join(folder, 'newer');
const home = join(folder, 'home');
beforeAll(async () => {
  await script('packages/build.ts', '--out', out);
  await script('executable/build.ts', '--out', out);
  copyFileSync(join(out, name), file);
  const manifest = join(out, 'build/skillwright/package.json');
  writeFileSync(manifest, readFileSync(manifest, 'utf8').replace('"0.1.0"', '"0.1.1"'));
  await script('executable/build.ts', '--out', out, '--plain');
  renameSync(join(out, name.replace('0.1.0', '0.1.1')), newer);
  mkdirSync(home);
}, 900_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Skills that import a package beside them, and return the flags of the process that runs them. */
function skills(): string {
  const directory = mkdtempSync(join(folder, 'skills-'));
  const skill = (name: string, type: string) =>
    `import { defineSkill } from 'skillwright';
     import { mark } from 'marks';
     export default defineSkill({
       category: 'own', name: '${name}', version: 'v1.0', displayName: 'Own', description: 'Own.',
       parameters: { type: 'object' }, output: { type: 'object' },
       run: ({ text }${type}) => ({ text: mark(text), flags: process.execArgv }),
     });`;
  cpSync(join(root, 'examples/skills'), join(directory, 'examples'), { recursive: true });
  mkdirSync(join(directory, 'node_modules/marks'), { recursive: true });
  writeFileSync(
    join(directory, 'node_modules/marks/package.json'),
    '{"name":"marks","version":"1.0.0","type":"module","exports":"./index.js"}',
  );
  writeFileSync(
    join(directory, 'node_modules/marks/index.js'),
    "export const mark = (text) => text + '!';",
  );
  writeFileSync(join(directory, 'typed.ts'), skill('typed', ': { text: string }'));
  writeFileSync(join(directory, 'plain.mjs'), skill('plain', ''));
  return directory;
}

async function start(dataDir: string, settings: Record<string, string> = {}, program = file) {
  const environment = { EXECUTORS: '1', HOME: home, ...settings };
  const platform = await startProcess(dataDir, environment, undefined, program);
  onTestFinished(() => platform.signal('SIGKILL'));
  return platform;
}

/** Runs a command of the file; what it prints. */
function command(program: string, args: readonly string[], env: Record<string, string> = {}) {
  const options = { encoding: 'utf8', env: { HOME: home, ...env }, cwd: folder } as const;
  const { status, stdout, stderr } = spawnSync(program, [...args], options);
  return { status, stdout, stderr };
}

test('is fetched as less than 70 MB', () => {
  expect(statSync(join(out, `${name}.gz`)).size).toBeLessThan(70_000_000);
});

test('runs the skills of a folder, with the packages beside them, and shows console and guides', async () => {
  const dataDir = join(folder, 'first');
  const platform = await start(dataDir, { SKILLS_DIR: skills(), EXECUTOR_MEMORY_MB: '300' });
  const tenant = await newTenant(platform);

  for (const skill of ['own/v1.0/typed', 'own/v1.0/plain']) {
    const { body } = await tenant.run(skill, { text: 'a' });
    expect(body, skill).toMatchObject({ status: 'completed', output: { text: 'a!' } });
    const { flags } = (body as { output: { flags: string[] } }).output;
    expect(flags).toContain('--max-old-space-size=300');
    // The last one counts: the platform's own flags are not for executors.
    expect(flags.findLast((flag) => flag.startsWith('--min-semi-space'))).toBe(
      '--min-semi-space-size=0',
    );
  }
  for (const path of ['/console/', '/docs', '/docs/scalar.js', '/docs/guide/start']) {
    expect((await fetch(`${platform.url}${path}`)).status, path).toBe(200);
  }
  const env = { SKILLWRIGHT_URL: platform.url, SKILLWRIGHT_API_KEY: tenant.key };
  expect(command(file, ['run', 'own/v1.0/typed', '{"text":"c"}'], env)).toMatchObject({
    status: 0,
    stdout: expect.stringContaining('"c!"'),
  });
});

test('sandboxed processes have no permission but to read the code of the platform', async () => {
  const platform = await start(join(folder, 'sandbox'));
  const tenant = await newTenant(platform);
  const { body } = await tenant.run('data/v1.0/query-json', {
    expression: 'a + 1',
    data: { a: 1 },
  });
  expect(body).toMatchObject({ status: 'completed', output: { result: 2 } });
  // It is kept for further expressions.
  const lines = readdirSync('/proc')
    .filter((pid) => /^\d+$/.test(pid))
    .map((pid) => commandLine(pid))
    .filter((line) => line.includes(home) && line.includes('sandbox-process.js'));
  expect(lines).toEqual([expect.stringMatching(/^\S*skillwright --node-options=.* --permission /)]);

  const code = join(folder, 'probe/src');
  mkdirSync(code, { recursive: true });
  copyFileSync(join(root, 'scripts/executable/load.js'), join(code, 'load.js'));
  writeFileSync(join(code, '../package.json'), '{"type":"module"}');
  writeFileSync(
    join(code, 'probe.js'),
    `import { readFileSync, writeFileSync } from 'node:fs';
     import { spawnSync } from 'node:child_process';
     const codeOf = (action) => { try { action(); return 'done'; } catch (error) { return error.code ?? error.name; } };
     console.log(JSON.stringify([
       codeOf(() => readFileSync('/etc/passwd')),
       codeOf(() => writeFileSync(new URL('made', import.meta.url), '')),
       codeOf(() => spawnSync('true')),
       codeOf(() => new Function('return 1')()),
     ]));`,
  );
  const flags = ['--permission', '--disallow-code-generation-from-strings'];
  const readable = `--allow-fs-read=${join(code, '..')}/*`;
  const args = executableArguments([...flags, readable]);
  const { stdout, stderr } = command(file, [...args, join(code, 'probe.js')]);

  const denied = 'ERR_ACCESS_DENIED';
  expect(JSON.parse(stdout), stderr).toEqual([denied, denied, denied, 'EvalError']);
});

function commandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return '';
  }
}

test('a job that it has accepted is carried out after kill -9', async () => {
  const dataDir = join(folder, 'killed');
  const first = await start(dataDir);
  const tenant = await newTenant(first);
  const jobId = await tenant.start('util/v1.0/wait', { ms: 500 });
  first.signal('SIGKILL');
  await first.exit;

  const second = await start(dataDir);
  const { body } = await second.jobIn(tenant.key, jobId, 'completed', 'failed');
  expect(body).toMatchObject({ job_id: jobId, status: 'completed' });
});

test('a newer file takes the place of the platform that runs', async () => {
  const dataDir = join(folder, 'upgraded');
  const program = join(folder, 'installed');
  copyFileSync(file, program);
  const platform = await start(dataDir, {}, program);
  const tenant = await newTenant(platform);
  copyFileSync(newer, join(folder, 'fetched'));
  // As an upgrade does: the file of the process that runs is another one from now on.
  renameSync(join(folder, 'fetched'), program);
  const before = await tenant.run('util/v1.0/echo', { text: 'a' });
  expect(before.body).toMatchObject({ status: 'completed' });

  const env = { DATA_DIR: dataDir, PORT: '0', EXECUTORS: '1', ADMIN_SECRET: adminSecret };
  // Not synchronously: this process must see that the platform closes its connections.
  const options = { env: { HOME: home, ...env }, cwd: folder };
  const replaced = await promisify(execFile)(program, ['start', '--replace'], options);
  expect(replaced.stdout, replaced.stderr).toMatch(/The process \d+ has taken over/);
  const [, pid] = /The process (\d+)/.exec(replaced.stdout) ?? [];
  onTestFinished(() => void process.kill(Number(pid), 'SIGKILL'));
  // Its successor writes where it did, so `exit`, the end of its output, would not come.
  await expect.poll(() => commandLine(String(platform.pid))).toBe('');

  const health = await fetch(`${platform.url}/health`);
  expect(await health.json()).toMatchObject({ status: 'ok', version: '0.1.1' });
  const after = await tenant.run('util/v1.0/echo', { text: 'b' });
  expect(after.body).toMatchObject({ status: 'completed' });
  // Each version has a folder of its own.
  expect(globSync('.cache/skillwright/program/*', { cwd: home })).toHaveLength(2);
});

test('doctor finds no fault in the layout of the systemd unit', async ({ signal }) => {
  const settings = readFileSync(join(root, 'deploy/systemd/skillwright.env'), 'utf8');
  const context = mkdtempSync(join(folder, 'unit-'));
  copyFileSync(file, join(context, 'skillwright'));
  writeFileSync(join(context, '.dockerignore'), '');
  writeFileSync(
    join(context, 'Dockerfile'),
    [
      ...['FROM debian:trixie-slim', 'WORKDIR /app', 'COPY skillwright ./'],
      ...[...settings.matchAll(/^[A-Z_]+=.*$/gm)].map(([line]) => `ENV ${line}`),
      ...['USER 10002:10002', 'ENTRYPOINT ["/app/skillwright"]'],
    ].join('\n'),
  );
  const volumes = ['/var/lib/skillwright', '/var/cache/skillwright'];
  const image = await buildImage(context, 'Dockerfile', { signal, volumes });
  onTestFinished(() => image.remove());

  const environment = { PORT: String(await freePort()) };
  const doctor = await image.run(['/app/skillwright', 'doctor', '--json'], environment);
  const { data } = JSON.parse(doctor.output) as { data: Finding[] };

  expect(data.filter(({ state }) => state === 'fault')).toEqual([]);
  expect(data.map(({ message }) => message)).toContain('/var/lib/skillwright');
  const cached = await image.run(['ls', '/var/cache/skillwright']);
  expect(cached).toEqual({ code: 0, output: 'program\n' });
}, 120_000);

test.skipIf(!canBoot())(
  'systemd starts its units, and restarts it while clients wait',
  async () => {
    const machine = await bootUnits(file);
    onTestFinished(() => machine.stop());
    const { run } = machine;
    const ask = (path: string) => `curl -s --fail --max-time 30 http://127.0.0.1:3000${path}`;
    const isUp = () => run(ask('/health')).catch(() => null);
    await waitFor(isUp, { describe: 'the unit answers', deadlineMs: 60_000 });

    const pid = await run('systemctl show --property=MainPID --value skillwright');
    const status = await run(`cat /proc/${pid.trim()}/status`);
    expect(status).toMatch(/^CapEff:\t0+$/m);
    expect(status).toMatch(/^Seccomp:\t2$/m);
    const settings = 'export XDG_CONFIG_HOME=/root/config XDG_CACHE_HOME=/root/cache;';
    const secret = 'export ADMIN_SECRET=$(cat /var/lib/skillwright/admin-secret);';
    await run(`${settings} ${secret} skillwright keys create me --scopes '*' --save`);
    // A process of its own, in a sandbox.
    const queried = `skillwright run data/v1.0/query-json '{"expression":"a + 1","data":{"a":1}}'`;
    expect(JSON.parse(await run(`${settings} ${queried}`))).toMatchObject({ result: 2 });
    const doctor =
      'runuser -u skillwright -- skillwright doctor --env-file /etc/skillwright/skillwright.env';
    expect(await run(`cd /; ${doctor}`)).toContain('in use by the platform that runs');

    const asking = `for n in $(seq 20); do ${ask('/health')} --output /dev/null; sleep 0.1; done`;
    await Promise.all([run(asking), run('sleep 0.5; systemctl restart skillwright')]);
    const log = await run('journalctl --unit skillwright --no-pager --output=cat');
    expect(log.match(/Skillwright is ready/g)).toHaveLength(2);
    expect(log).not.toContain('SIGKILL');
  },
  180_000,
);

test('a file of its program that was lost is written again', () => {
  const programs = globSync('.cache/skillwright/program/*/src/apps/cli/main.js', { cwd: home });
  for (const lost of programs) rmSync(join(home, lost));

  expect(programs.length).toBeGreaterThan(0);
  expect(command(file, ['--version'])).toMatchObject({ status: 0, stdout: '0.1.0\n' });
});

test('a folder that others may write to is not used', () => {
  const open = join(folder, 'open');
  mkdirSync(join(open, '.cache/skillwright/program'), { recursive: true });
  spawnSync('chmod', ['777', join(open, '.cache/skillwright/program')]);
  const data = join(folder, 'data of the user');

  const { status } = command(file, ['--version'], { HOME: open, DATA_DIR: data });

  expect(status).toBe(0);
  expect(readdirSync(join(open, '.cache/skillwright/program'))).toEqual([]);
  expect(globSync('.program/*/src/start.js', { cwd: data })).toHaveLength(1);
});
