/** The command line in this process: what it prints, and its exit codes. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, onTestFinished, test, vi } from 'vitest';
import { exitCodes } from './exit-codes.ts';
import { type Io, Output } from './io.ts';
import { runCli } from './program.ts';

const home = mkdtempSync(join(tmpdir(), 'skillwright-cli-'));
mkdirSync(join(home, 'skillwright'));
writeFileSync(
  join(home, 'skillwright/config.json'),
  JSON.stringify({
    current: 'near',
    profiles: { near: { url: 'http://near:1', key: 'k-near' }, far: { url: 'https://far/' } },
  }),
);

interface Call {
  readonly url: string;
  readonly key: string | null;
  readonly body: unknown;
}

const quietIo: Pick<Io, 'stdin' | 'now' | 'interrupted'> = {
  stdin: {
    isTTY: false,
    read: async () => '',
    async *lines() {},
    askSecret: async () => '',
  },
  now: () => 0,
  interrupted: new AbortController().signal,
};

interface World {
  readonly env?: Record<string, string>;
  readonly answer?: Answer;
  readonly cwd?: string;
  readonly interrupted?: AbortSignal;
  readonly now?: () => number;
}

/** Runs a command against a platform that gives this answer. */
async function call(
  args: readonly string[],
  {
    env = {},
    answer = completed,
    cwd = home,
    interrupted = quietIo.interrupted,
    now = quietIo.now,
  }: World = {},
) {
  const calls: Call[] = [];
  let starts = 0;
  let settings: Readonly<Record<string, string>> | undefined;
  const [stdout, stderr] = [textOutput(), textOutput()];
  const fetch = async (url: unknown, init?: RequestInit) => {
    const key = new Headers(init?.headers).get('x-api-key');
    calls.push({ url: String(url), key, body: JSON.parse(String(init?.body ?? null)) });
    return answer();
  };
  const code = await runCli(
    {
      io: {
        ...quietIo,
        ...{ stdout, stderr, env: { XDG_CONFIG_HOME: home, ...env }, cwd, fetch, interrupted, now },
      },
      version: '1.2.3',
      async startPlatform(given) {
        starts += 1;
        settings = given;
      },
    },
    args,
  );
  return { code, stdout: stdout.text(), stderr: stderr.text(), calls, starts, settings };
}

type Answer = () => Response;
const job = (fields: object) => () =>
  Response.json({ job_id: 'j1', status: 'completed', output: null, error: null, ...fields });
const completed = job({ output: { words: 2 } });

function textOutput(): Output & { text(): string } {
  const texts: string[] = [];
  const output = new Output((text) => texts.push(text), { isTTY: false, hasColors: false });
  return Object.assign(output, { text: () => texts.join('') });
}

afterEach(() => {
  vi.useRealTimers();
});

test('without arguments, and with start, the platform is started', async () => {
  expect(await call([])).toMatchObject({ code: 0, starts: 1, stderr: '' });
  expect(await call(['start'])).toMatchObject({ code: 0, starts: 1, stderr: '' });
});

test('dev reads .env, start and doctor only the file that --env-file names; the environment counts more', async () => {
  const cwd = mkdtempSync(join(tmpdir(), 'skillwright-env-'));
  onTestFinished(() => rmSync(cwd, { recursive: true, force: true }));
  mkdirSync(join(cwd, 'own'));
  writeFileSync(join(cwd, '.env'), '# Settings\nPORT=many\nSKILLS_DIR=own\nexport TOKEN="a b"\n');
  const world = { cwd, env: { PORT: '4000' } };
  const given = { SKILLS_DIR: 'own', TOKEN: 'a b' };

  const dev = await call(['dev'], world);
  expect(dev.stdout).toBe('  Read .env: 2 variables\n');
  expect(dev.settings).toMatchObject({ TOKEN: 'a b', SKILLS_DIR: join(cwd, 'own') });
  expect(dev.settings).not.toHaveProperty('PORT');
  expect((await call(['start'], world)).settings).toEqual({});
  expect((await call(['start', '--env-file', '.env'], world)).settings).toEqual(given);
  const missing = await call(['start', '--env-file', 'none'], world);
  expect(missing).toMatchObject({ code: 2, stderr: `There is no file ${join(cwd, 'none')}\n` });
  const doctor = await call(['doctor', '--env-file', '.env'], { cwd });
  expect(doctor.stdout).toContain('fault\tconfiguration\tPORT="many"');
});

test('help and version are printed with code 0', async () => {
  expect(await call(['--version'])).toMatchObject({ code: 0, stdout: '1.2.3\n' });
  const help = await call(['help', 'run']);
  expect(help).toMatchObject({ code: 0, starts: 0 });
  expect(help.stdout).toContain('category/version/name');
});

test.each([
  ['an unknown command', ['dance'], /unknown command 'dance'/],
  ['an unknown option', ['run', 'a/v1.0/b', '--loud'], /unknown option '--loud'/],
  [
    'keys without the admin secret',
    ['keys', 'create', 'me', '--scopes', '*'],
    /data\/admin-secret/,
  ],
  ['keys without the admin secret', ['keys'], /--admin-secret or in ADMIN_SECRET/],
  ['a skill that is not named in full', ['run', 'word-count'], /category\/version\/name/],
  ['an input that is no JSON', ['run', 'a/v1.0/b', '{'], /input is no JSON/],
  ['an address that is none', ['run', 'a/v1.0/b', '--url', 'near'], /near is no address/],
  ['a profile that is not there', ['run', 'a/v1.0/b', '--profile', 'x'], /no profile x.*near, far/],
])('%s ends with code 2 and a sentence', async (_what, args, sentence) => {
  const { code, stdout, stderr, calls } = await call(args);
  expect({ code, stdout, calls }).toEqual({ code: 2, stdout: '', calls: [] });
  expect(stderr).toMatch(sentence);
});

test('a call that is wrong is told where the right one stands', async () => {
  const { code, stderr } = await call(['jobs', 'show']);
  expect({ code, stderr }).toEqual({
    code: 2,
    stderr:
      "error: missing required argument 'job'\nIts arguments, options and examples: add --help\n",
  });
});

test('docs/cli.md has all exit codes', () => {
  const text = readFileSync(new URL('../../../docs/cli.md', import.meta.url), 'utf8');
  const [, section = ''] = text.split('## Exit codes');
  const codes = [...section.matchAll(/^\| (\d+) \|/gm)].map(([, code]) => Number(code));
  expect(codes).toEqual(Object.values(exitCodes));
});

test('run prints the output of the job as one line of JSON', async () => {
  const { code, stdout, calls } = await call(['run', 'text/v1.0/word-count', '{"text":"a b"}']);
  expect({ code, stdout }).toEqual({ code: 0, stdout: '{"words":2}\n' });
  const url = 'http://near:1/api/text/v1.0/word-count';
  expect(calls).toEqual([{ url, key: 'k-near', body: { text: 'a b' } }]);
});

test('options come before the environment, and that before the profile', async () => {
  const env = { SKILLWRIGHT_URL: 'http://env', SKILLWRIGHT_API_KEY: 'k-env' };
  const args = ['run', 'a/v1.0/b'];
  const [fromEnv] = (await call(args, { env })).calls;
  expect(fromEnv).toMatchObject({ url: 'http://env/api/a/v1.0/b', key: 'k-env' });
  const [fromOptions] = (await call([...args, '--url', 'http://o', '--key', 'k'], { env })).calls;
  expect(fromOptions).toMatchObject({ url: 'http://o/api/a/v1.0/b', key: 'k' });
  const [fromProfile] = (await call([...args, '--profile', 'far'])).calls;
  expect(fromProfile).toMatchObject({ url: 'https://far/api/a/v1.0/b', key: null });
});

const failed = job({ status: 'failed', error: { code: 'skill_timeout', message: 'too slow' } });
const refused = (status: number) => () =>
  Response.json({ error: 'a_code', message: 'The reason.' }, { status });
const silent = () => {
  throw new TypeError('fetch failed', { cause: new Error('connect ECONNREFUSED') });
};

test.each<[string, Answer, number, RegExp]>([
  ['a job that failed', failed, 3, /j1 failed with skill_timeout: too slow/],
  ['a refused key', refused(401), 5, /The reason\./],
  ['a missing scope', refused(403), 5, /The reason\./],
  ['another refusal', refused(404), 1, /The reason\./],
])('%s has an exit code of its own', async (_what, answer, code, sentence) => {
  const ended = await call(['run', 'a/v1.0/b'], { answer });
  expect(ended).toMatchObject({ code, stdout: '' });
  expect(ended.stderr).toMatch(sentence);
});

/** Lets faked timers pass until a command has ended: before it sets one it also reads files, in real time. */
async function passingTimers<T>(ending: Promise<T>): Promise<T> {
  let hasEnded = false;
  const noted = ending.finally(() => {
    hasEnded = true;
  });
  noted.catch(() => {});
  while (!hasEnded) {
    await vi.runAllTimersAsync();
    await new Promise((resolve) => setImmediate(resolve));
  }
  return noted;
}

test('a platform that does not answer is waited for, with a line that says so, and has an exit code', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] });
  const begun = Date.now();

  const ending = call(['run', 'a/v1.0/b'], { answer: silent });
  const { code, stdout, stderr } = await passingTimers(ending);

  expect({ code, stdout }).toEqual({ code: 4, stdout: '' });
  expect(Date.now() - begun).toBeGreaterThan(120_000);
  const fault = 'http://near:1 did not answer: connect ECONNREFUSED.';
  expect(stderr).toBe(
    `${fault} Trying again; Ctrl-C ends the command.\n${fault} Is the platform started, and is its address right (--url)?\n`,
  );
});

test('a platform that answers again within a second is waited for without a word', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] });
  const answers = [silent, completed];

  const ending = call(['run', 'a/v1.0/b'], { answer: () => (answers.shift() ?? completed)() });

  expect(await passingTimers(ending)).toMatchObject({
    code: 0,
    stdout: '{"words":2}\n',
    stderr: '',
  });
});

test('Ctrl-C ends a command that waits for its platform', async () => {
  const interrupt = new AbortController();
  const answer = () => {
    // While the command pauses before its next attempt.
    setTimeout(() => interrupt.abort());
    return silent();
  };

  const { code } = await call(['run', 'a/v1.0/b'], { answer, interrupted: interrupt.signal });

  expect(code).toBe(130);
});

test('an erasure pauses before it is repeated, and Ctrl-C ends the pause', async () => {
  const interrupt = new AbortController();
  const counts = { memories: 1, conversations: 0, jobs: 0 };
  const answer = () => {
    // While the command pauses before it repeats the request.
    setTimeout(() => interrupt.abort());
    return Response.json({ done: false, waits_for: null, open_jobs: 0, ...counts });
  };

  const ended = await call(['users', 'erase', 'alice'], {
    answer,
    interrupted: interrupt.signal,
  });

  expect(ended).toMatchObject({ code: 130, stdout: '' });
  expect(ended.calls).toHaveLength(1);
});

test('an erasure that is repeated says what it waits for, and ends where a backup holds the log for five minutes', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'], fakeNodeBuiltins: true });
  const begun = Date.now();
  const minutes = () => Math.floor((Date.now() - begun) / 60_000);
  // For ten minutes requests erase events, which no count shows.
  const answer = () =>
    Response.json({
      ...{ done: false, waits_for: null, waits_for_log: minutes() >= 10, open_jobs: 0 },
      ...{ memories: 0, conversations: 0, jobs: 0 },
    });

  const ending = call(['users', 'erase', 'alice'], { answer, now: () => Date.now() });
  const { code, stdout, stderr } = await passingTimers(ending);

  expect({ code, stdout, minutes: minutes() }).toEqual({ code: 1, stdout: '', minutes: 14 });
  expect(stderr).toMatch(
    /^More is left, or a backup .*\nAll is erased but in the log .* for 5 minutes: erase again later\.\n$/,
  );
});

test('a file of profiles that is not JSON is named', async () => {
  const other = mkdtempSync(join(tmpdir(), 'skillwright-cli-'));
  onTestFinished(() => rmSync(other, { recursive: true, force: true }));
  mkdirSync(join(other, 'skillwright'));
  writeFileSync(join(other, 'skillwright/config.json'), '{');
  const { code, stderr } = await call(['run', 'a/v1.0/b'], { env: { XDG_CONFIG_HOME: other } });
  expect(code).toBe(1);
  expect(stderr).toContain(join(other, 'skillwright/config.json'));
});
