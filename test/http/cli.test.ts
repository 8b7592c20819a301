/** The command line against a platform: what each command prints, and how it ends. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runCli } from '../../src/apps/cli/program.ts';
import { bodySignature, isStandardSignature } from '../../src/kernel/webhook-signature.ts';
import { type CliWorld, ioOf, cli as runCommand } from '../support/cli.ts';
import { adminSecret } from '../support/platform.ts';
import { answering, inTurn } from '../support/scripted-provider.ts';
import { acting, gate, play } from '../support/staged.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';
import { startThinkers, type Thinkers } from '../support/thinkers.ts';
import { waitFor } from '../support/wait-for.ts';

let world: Thinkers;
let tenant: Tenant;
const home = mkdtempSync(join(tmpdir(), 'skillwright-cli-'));
beforeAll(async () => {
  world = await startThinkers();
  tenant = await newTenant(world.platform);
});
afterAll(async () => {
  await world.stop();
  rmSync(home, { recursive: true, force: true });
});

/** Runs a command with the tenant's key and the admin secret. */
function cli(args: readonly string[], options: CliWorld = {}) {
  const env = {
    SKILLWRIGHT_URL: world.platform.url,
    SKILLWRIGHT_API_KEY: tenant.key,
    ADMIN_SECRET: adminSecret,
    XDG_CONFIG_HOME: home,
    ...options.env,
  };
  return runCommand(args, { cwd: home, ...options, env });
}

/** Runs a command with `--json`; what it prints. */
async function json(args: readonly string[], options: CliWorld = {}) {
  const { code, stdout, stderr } = await cli([...args, '--json'], options);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return JSON.parse(stdout);
}

const echo = 'util/v1.0/echo';
const unknownId = '01990a5e-7c1b-7000-8f1e-0c5a7e9b2d11';
const id = expect.stringMatching(/^[0-9a-f-]{36}$/);

/** Output with the same ids and times in each run. */
function stable(text: string): string {
  return text
    .replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}/g, '<id, thirty-six characters of the job>')
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<time>')
    .replaceAll('\u001b', '\\e');
}

describe('run', () => {
  test.each<[string, string[], string]>([
    ['JSON', [`{"text":"a b"}`], ''],
    ['key=value pairs', ['text=a b'], ''],
    ['a file', ['@input.json'], ''],
    ['stdin', ['-'], '{"text":"a b"}'],
  ])('takes its input as %s', async (_form, words, stdin) => {
    writeFileSync(join(home, 'input.json'), '{"text":"a b"}');
    const ended = await cli(['run', echo, ...words], { stdin });
    expect(ended).toEqual({ code: 0, stdout: '{"text":"a b"}\n', stderr: '' });
  });

  test('--file uploads files for the user of the run, and names them in the input', async () => {
    writeFileSync(join(home, 'tides.txt'), 'Low tide at nine.');
    writeFileSync(join(home, 'moon.txt'), 'Full.');
    const files = ['--file', 'tides.txt', '--file', 'moon.txt'];
    world.provider.script(answering('At nine.'));
    const task = ['run', 'agent/v1.0/run-task', 'task=When?', '--user', 'ada'];

    const job = await json([...task, ...files]);

    expect(job).toMatchObject({ status: 'completed', input: { task: 'When?', files: [id, id] } });
    const { body } = await tenant.get(`/api/files/${job.input.files[0]}`);
    expect(body).toMatchObject({ name: 'tides.txt', user_id: 'ada', bytes: 17 });
    expect(await cli([...task, '--file', 'none.txt'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('none.txt cannot be read: there is no such file'),
    });
  });

  test('--no-wait prints the job, and --json the whole of it', async () => {
    const { stdout } = await cli(['run', echo, 'text=a', '--no-wait']);
    expect(stable(stdout)).toBe('job_id\t<id, thirty-six characters of the job>\nstatus\tqueued\n');
    const job = await json(['run', echo, 'text=a']);
    expect(job).toMatchObject({ job_id: id, status: 'completed', output: { text: 'a' } });
  });

  test('--follow prints what the run says on stderr, and only the output on stdout', async () => {
    const input = { ...acting({ log: 'half way' }), output: { done: true } };
    const followed = await cli(['run', play, JSON.stringify(input), '--follow']);
    expect(followed).toEqual({
      code: 0,
      stdout: '{"done":true}\n',
      stderr: 'queued\nactive\nhalf way\ncompleted\n',
    });
  });

  test('on a terminal the last event is one line that the output replaces', async () => {
    const input = { ...acting({ log: 'half way' }), output: { done: true } };
    const { stdout, stderr } = await cli(['run', play, JSON.stringify(input)], { terminal: true });
    expect(stdout).toBe('{\n  "done": true\n}\n');
    expect(stderr).toContain('half way');
    expect(stderr.endsWith('\r\u001b[2K')).toBe(true);
  });

  test('a job that fails ends it with code 3, Ctrl-C with 130', async () => {
    const failing = JSON.stringify(acting({ fail: { message: 'no paper', retryable: false } }));
    expect(await cli(['run', play, failing])).toMatchObject({
      code: 3,
      stdout: '',
      stderr: expect.stringMatching(/failed with \w+: .*no paper/),
    });
    const { path } = gate();
    const interrupted = new AbortController();
    const waiting = cli(['run', play, JSON.stringify(acting({ until: path }))], {
      interrupted: interrupted.signal,
    });
    await waitFor(async () => (await json(['jobs', '--status', 'active'])).total > 0, {
      describe: 'an active job',
    });
    interrupted.abort();
    expect(await waiting).toEqual({ code: 130, stdout: '', stderr: '' });
  });
});

test('queue shows what waits by queue, skill and agent, and with --all by organization', async () => {
  const own = await newTenant(world.platform);
  const later = { 'x-delay-seconds': '3600' };
  const jobId = await own.start(echo, { text: 'a' }, later);

  const { stdout } = await cli(['queue', '--key', own.key]);
  const all = await json(['queue', '--all']);
  const without = await cli(['queue', '--all'], { env: { ADMIN_SECRET: undefined } });
  await own.post(`/api/jobs/${jobId}/cancel`);

  expect(stdout).toMatchInlineSnapshot(`
    "queue	skill-execution	0	0	1	-	-	-	-
    queue	scheduled-jobs	0	0	0	-	-	-	-
    skill	util/v1.0/echo	0	0	1	-	-	-	-
    agent	default	0	0	1	-	-	-	-
    "
  `);
  expect(all.organizations.data).toContainEqual(
    expect.objectContaining({ name: own.organization, waiting: 0, later: 1 }),
  );
  expect(without).toMatchObject({ code: 2, stderr: expect.stringContaining('admin secret') });
});

describe('jobs', () => {
  let done: string;
  let failed: string;
  let own: Tenant;
  beforeAll(async () => {
    own = await newTenant(world.platform);
    failed = (
      await own.run(play, acting({ fail: { message: 'no \u001b[31mpaper', retryable: false } }))
    ).body.job_id;
    done = (await own.run(echo, { text: 'a' })).body.job_id;
  });
  const mine = (args: string[], options: CliWorld = {}) =>
    cli([...args, '--key', own.key], options);

  test('list is a table on a terminal and lines with tabs elsewhere', async () => {
    const now = () => Date.now() + 120_000;
    const terminal = await mine(['jobs'], { terminal: true, now });
    expect(stable(terminal.stdout)).toMatchInlineSnapshot(`
      "\\e[2mJOB\\e[22m                                   \\e[2mSTATUS\\e[22m     \\e[2mSKILL\\e[22m             \\e[2mAGENT\\e[22m    \\e[2mACCEPTED\\e[22m    \\e[2mERROR\\e[22m
      <id, thirty-six characters of the job>  \\e[32mcompleted\\e[39m  util/v1.0/echo    default  2 min. ago  -
      <id, thirty-six characters of the job>  \\e[31mfailed\\e[39m     staged/v1.0/play  default  2 min. ago  skill_execution_failed
      "
    `);
    expect(stable((await mine(['jobs'])).stdout)).toMatchInlineSnapshot(`
      "<id, thirty-six characters of the job>	completed	util/v1.0/echo	default	<time>	-
      <id, thirty-six characters of the job>	failed	staged/v1.0/play	default	<time>	skill_execution_failed
      "
    `);
    expect((await mine(['jobs', '--limit', '1'], { terminal: true })).stderr).toBe(
      '1 to 1 of 2; more with --offset 1\n',
    );
  });

  test('show, logs and events tell of one job', async () => {
    const shown = await mine(['jobs', 'show', done], { terminal: true });
    expect(shown.stdout).toContain('completed');
    expect((await mine(['jobs', 'show', done])).stdout).toContain(`skill\t${echo}\n`);
    const { stdout } = await mine(['events', done]);
    expect(stdout).toBe('queued\nactive\ncompleted\n');
    expect((await mine(['logs', done])).stdout).toBe('');
    const lines = (await mine(['events', done, '--json'])).stdout.trim().split('\n');
    expect(lines.map((line) => JSON.parse(line).id)).toEqual(['0.0', '1.0', '1.1000000000']);
  });

  test('what a run says reaches the terminal without control characters', async () => {
    const { stdout } = await mine(['events', failed], { terminal: true });
    expect(stdout).toContain('no \ufffd[31mpaper');
  });

  test('logs -f goes on until the job ends; without it the log so far is printed', async () => {
    const { path, open } = gate();
    const job = await own.start(play, acting({ log: 'first' }, { until: path }, { log: 'second' }));
    await waitFor(async () => (await mine(['logs', job])).stdout === 'first\n', {
      describe: 'the first line',
    });
    const following = mine(['logs', '-f', job]);
    open();
    expect(await following).toEqual({ code: 0, stdout: 'first\nsecond\n', stderr: '' });
  });

  test('cancel stops a job, and retry runs it again', async () => {
    const { path } = gate();
    const job = await own.start(play, acting({ until: path }));
    await own.jobIn(job, 'active');
    expect(await mine(['cancel', job])).toMatchObject({ code: 0 });
    await own.jobIn(job, 'cancelled');
    expect(await mine(['cancel', done])).toMatchObject({ code: 1, stdout: '' });
    const again = await mine(['retry', job, '--no-wait', '--json']);
    const retried = JSON.parse(again.stdout);
    await mine(['cancel', retried.job_id]);
    expect(retried).toMatchObject({ job_id: id, status: 'queued' });
    const { is_resumed } = JSON.parse(
      (await mine(['jobs', 'show', retried.job_id, '--json'])).stdout,
    );
    expect(is_resumed).toBe(true);
    const anew = JSON.parse((await mine(['retry', job, '--anew', '--no-wait', '--json'])).stdout);
    await mine(['cancel', anew.job_id]);
    expect(anew.conversation_id).not.toBe(retried.conversation_id);
  });

  test('an unknown job ends with code 1, a wrong key with 5, a wrong address with 4', async () => {
    expect(await mine(['jobs', 'show', unknownId])).toMatchObject({ code: 1, stdout: '' });
    const refused = await cli(['jobs', '--key', 'sk_wrong']);
    expect(refused).toMatchObject({
      code: 5,
      stderr: expect.stringContaining('skillwright login'),
    });
    const silent = await cli(['jobs', '--url', 'http://127.0.0.1:1']);
    expect(silent).toMatchObject({ code: 4, stderr: expect.stringContaining('--url') });
  });
});

test('run takes when it may begin and when it is too late; show prints both', async () => {
  const later = ['--at', '2999-01-01T00:00:00Z'];
  expect(await cli(['run', echo, 'text=a', ...later])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('x-run-at'),
  });
  const times = ['--delay', '3600', '--expires-in', '7200', '--no-wait'];
  const { job_id } = await json(['run', echo, 'text=a', ...times]);
  const { created_at, run_at, expires_at } = await json(['jobs', 'show', job_id]);
  expect(Date.parse(run_at) - Date.parse(created_at)).toBe(3_600_000);
  expect(Date.parse(expires_at) - Date.parse(created_at)).toBe(7_200_000);
  expect((await cli(['jobs', 'show', job_id])).stdout).toContain('expires_at\t');
  expect((await cli(['cancel', job_id])).code).toBe(0);
});

test('run takes a priority and a key', async () => {
  const keyed = ['--delay', '3600', '--no-wait', '--job-key', 'cli', '--priority', 'low'];
  const first = await json(['run', echo, 'text=a', ...keyed]);
  const second = await json(['run', echo, 'text=b', ...keyed, '--job-key-mode', 'skip']);
  expect(second.job_id).toBe(first.job_id);
  const shown = await json(['jobs', 'show', first.job_id]);
  expect(shown).toMatchObject({ job_key: 'cli', priority: 'low' });
  const calm = ['--job-key', 'calm', '--job-key-mode', 'debounce', '--debounce', '9'];
  const later = await json(['run', echo, 'text=a', ...calm, '--debounce-max', '20', '--no-wait']);
  for (const { job_id } of [first, later]) expect((await cli(['cancel', job_id])).code).toBe(0);
});

test('jobs cancel and jobs retry change all jobs of a filter, after a count', async () => {
  const mine = ['--user', 'dora'];
  for (const text of ['a', 'b']) {
    await json(['run', echo, `text=${text}`, ...mine, '--delay', '3600', '--no-wait']);
  }
  expect((await cli(['jobs', 'cancel', ...mine, '--dry-run'])).stdout).toBe('2 jobs\n');
  expect(await json(['jobs', 'cancel', ...mine, '--dry-run'])).toEqual({ matching: 2 });
  expect((await cli(['jobs', 'cancel', ...mine, '--skill', 'text'])).stdout).toBe(
    '0 cancelled, 0 being stopped\n',
  );
  expect(await json(['jobs', 'cancel', ...mine, '--skill', echo])).toEqual({
    cancelled: 2,
    stopping: 0,
  });
  const cancelled = [...mine, '--status', 'cancelled'];
  expect(await json(['jobs', 'retry', ...cancelled])).toEqual({ retried: 2, refused: {} });
  // Each of them was run again.
  expect((await cli(['jobs', 'retry', ...cancelled])).stdout).toBe('0 run again\n');
  expect(await cli(['jobs', 'cancel'])).toMatchObject({ code: 1, stdout: '' });
  expect(await cli(['jobs', 'cancel', '--skill', `${echo}/more`])).toMatchObject({
    ...{ code: 2, stdout: '', stderr: expect.stringContaining('category/version/name at most') },
  });
});

test('jobs retry ends with code 1 where jobs were refused', async () => {
  const failing = [play, JSON.stringify(acting({ fail: { message: 'no', retryable: false } }))];
  await json(['agents', 'create', 'refuser']);
  expect((await cli(['run', ...failing, '--agent', 'refuser'])).code).toBe(3);
  await tenant.put('/api/agents/refuser', { status: 'paused' });
  expect(await cli(['jobs', 'retry', '--agent', 'refuser'])).toEqual({
    code: 1,
    stdout: '0 run again\n',
    stderr: 'Jobs were refused: 1 with agent_paused.\n',
  });
});

test('batch runs the items of a file, and ends with code 1 where some were refused', async () => {
  const good = { skill: echo, input: { text: 'a' } };
  writeFileSync(join(home, 'batch.json'), JSON.stringify([good, good]));
  const { id: batch, ...accepted } = await json(['batch', 'batch.json']);
  expect(accepted).toMatchObject({ accepted: 2, refused: 0 });
  expect((await json(['jobs', 'cancel', '--batch', batch, '--dry-run'])).matching).toBeLessThan(3);
  const stdin = JSON.stringify({ items: [good, { skill: 'util/v1.0/none', input: {} }] });
  const mixed = await cli(['batch', '-'], { stdin });
  expect(mixed).toMatchObject({ code: 1, stderr: '1 of 2 items were refused.\n' });
  expect(mixed.stdout).toMatch(/: 1 accepted, 1 refused\nitems\.1: skill_not_found: /);
  const calm = { ...good, job_key: 'calm', job_key_mode: 'debounce', debounce_seconds: 3600 };
  await cli(['batch', '-'], { stdin: JSON.stringify([calm]) });
  const ofKey = JSON.stringify([calm, { skill: 'util/v1.0/none', input: {} }]);
  const changed = await cli(['batch', '-'], { stdin: ofKey });
  expect(changed).toMatchObject({ code: 1, stderr: '1 of 2 items were refused.\n' });
  expect(changed.stdout).toContain(': 0 accepted, 1 refused, 1 debounced\n');
  const refused = await cli(['batch', '-', '--atomic'], { stdin });
  expect(refused).toMatchObject({ code: 1, stdout: '' });
  const keyed = ['batch', 'batch.json', '--idempotency-key', 'monday'];
  expect(await json(keyed)).toEqual(await json(keyed));
  expect((await cli(['batch', 'none.json'])).code).toBe(2);
});

test('skills lists what can run, and shows one with its schemas', async () => {
  expect((await cli(['skills', '--category', 'util'])).stdout).toContain(`${echo}\t`);
  const { stdout } = await cli(['skills', 'show', 'text/v1.0/word-count'], { terminal: true });
  expect(stdout).toContain('"text"');
  expect((await json(['skills', 'show', echo])).parameters_schema).toBeTypeOf('object');
  expect((await cli(['skills', 'show', 'echo'])).code).toBe(2);
});

test('keys are created, listed and revoked with the admin secret', async () => {
  const made = await json(['keys', 'create', 'a report', '--scopes', 'text, web']);
  expect(made).toMatchObject({ client_name: 'a report', scopes: ['text', 'web'] });
  const using = { env: { SKILLWRIGHT_API_KEY: made.plaintext_key } };
  expect((await cli(['jobs'], using)).code).toBe(0);
  expect((await cli(['keys'])).stdout).toMatch(new RegExp(`^${made.id}\ta report\t`, 'm'));
  expect((await cli(['keys', 'revoke', made.id])).stdout).toBe(`${made.id} is revoked\n`);
  expect((await cli(['jobs'], using)).code).toBe(5);
  const without = await cli(['keys'], { env: { ADMIN_SECRET: 'another-secret-of-tests' } });
  expect(without).toMatchObject({ code: 5, stderr: expect.stringContaining('--admin-secret') });
});

test('the data of a user are erased, with its open jobs', async () => {
  const options = ['--user', 'carol', '--json'];
  expect((await cli(['run', echo, 'text=carol', ...options])).code).toBe(0);
  expect((await json(['jobs', '--user', 'carol'])).data).toHaveLength(1);

  const erased = await json(['users', 'erase', 'carol', '--cancel-jobs']);

  expect(erased).toMatchObject({ done: true, open_jobs: 0, jobs: 1 });
  expect((await json(['jobs', '--user', 'carol'])).data).toEqual([]);
});

test('schedules are created, listed, run, switched and deleted', async () => {
  const made = await json([
    'schedules',
    'create',
    '0 6 * * *',
    echo,
    'text=early',
    '--priority=low',
  ]);
  expect(made.priority).toBe('low');
  expect(made).toMatchObject({ cron_expression: '0 6 * * *', input: { text: 'early' } });
  expect((await cli(['schedules'])).stdout).toContain(`${made.id}\t0 6 * * *\tUTC\t${echo}\t`);
  expect(await json(['schedules', 'timezone', made.id, 'Europe/Berlin'])).toMatchObject({
    timezone: 'Europe/Berlin',
  });
  const zone = ['--timezone', 'America/New_York'];
  const there = await json(['schedules', 'create', '0 6 * * *', echo, 'text=x', ...zone]);
  expect((await cli(['schedules'])).stdout).toContain(`${there.id}\t0 6 * * *\tAmerica/New_York\t`);
  expect(await json(['schedules', 'timezone', made.id, 'UTC'])).not.toHaveProperty('timezone');
  expect((await cli(['schedules', 'show', made.id])).stdout).toContain('early');
  expect((await cli(['schedules', 'run', made.id])).stdout).toContain('job_id\t');
  expect(await json(['schedules', 'disable', made.id])).toMatchObject({ enabled: false });
  expect(await json(['schedules', 'enable', made.id])).toMatchObject({ enabled: true });
  expect((await cli(['schedules', 'delete', made.id])).code).toBe(0);
  expect((await cli(['schedules', 'show', made.id])).code).toBe(1);
});

test('triggers are listed, shown and called, with a signature if they want one', async () => {
  const secret = 'a-secret-for-signatures';
  const { body: trigger } = await tenant.post('/api/agent-triggers', {
    ...{ agent_id: 'default', name: 'orders', signing_secret: secret },
    ...{ skill_category: 'util', skill_name: 'echo', skill_version: 'v1.0' },
  });
  expect((await cli(['triggers'])).stdout).toContain(`${trigger.id}\torders\tdefault\t${echo}\t`);
  expect((await cli(['triggers', 'show', trigger.id])).stdout).toContain('orders');
  const call = ['triggers', 'call', trigger.token, 'text=called'];
  expect((await cli(call)).code).toBe(5);
  const signed = await json([...call, '--signing-secret', secret]);
  expect(signed).toMatchObject({ job_id: id });
});

test('triggers are created, with the url that only this command shows, and deleted', async () => {
  const made = await json(['triggers', 'create', echo, '--name', 'notes', 'rate_limit=5']);
  expect(made).toMatchObject({ id, name: 'notes', rate_limit: 5, token: expect.any(String) });
  expect(await json(['triggers', 'call', made.url, 'text=called'])).toMatchObject({ job_id: id });
  expect((await cli(['triggers', 'delete', made.id])).stdout).toBe(`${made.id} is deleted\n`);
  expect((await cli(['triggers', 'show', made.id])).code).toBe(1);
  expect(await cli(['triggers', 'create', 'echo'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('A skill is named category/version/name, not "echo"'),
  });
});

test('webhooks are created, with the secret that only this command shows, and deleted', async () => {
  const events = ['skill.completed', 'skill.failed'];
  const create = ['webhooks', 'create', 'https://example.org/hooks', '--events', events.join(', ')];
  const made = await json(create);
  expect(made).toMatchObject({ id, agent_id: 'default', events, secret: expect.any(String) });
  expect((await cli(['webhooks'])).stdout).toContain(`${made.id}\tdefault\t`);
  expect(await json(['webhooks', 'delete', made.id])).toEqual({ id: made.id, deleted: true });
  expect((await cli(['webhooks'])).stdout).toBe('');
});

test('agents are created with instructions, skills and other fields, given a budget, and deleted', async () => {
  const made = await json([
    ...['agents', 'create', 'reader', '--instructions', 'Answer in one sentence.'],
    ...['--skills', 'text/*, util/v1.0/echo', 'metadata.team=docs'],
  ]);
  expect(made).toMatchObject({
    ...{ id: 'reader', instructions: 'Answer in one sentence.', metadata: { team: 'docs' } },
    skills: ['text/*', echo],
  });
  const budget = ['agents', 'budget', 'reader'];
  expect(await json([...budget, 'tokens_per_day=50000'])).toMatchObject({ tokens_per_day: 50_000 });
  expect((await cli(budget)).stdout).toContain('tokens_per_day\t50000\n');
  expect((await cli([...budget, '--remove'])).code).toBe(0);
  expect((await cli(budget)).stdout).not.toContain('50000');
  expect((await cli(['agents', 'delete', 'reader'])).code).toBe(0);
  expect((await cli(['agents', 'show', 'reader'])).code).toBe(1);
});

test('events send reaches runs that wait, and approvals answers their questions', async () => {
  expect(await json(['events', 'send', 'order.paid', 'amount=3'])).toMatchObject({ delivered: 0 });
  expect(await cli(['approvals'])).toEqual({ code: 0, stdout: '', stderr: '' });
  expect(await json(['approvals'])).toMatchObject({ data: [], total: 0 });
  for (const verb of ['show', 'approve', 'reject']) {
    expect((await cli(['approvals', verb, unknownId])).code).toBe(1);
  }
});

test('approvals shows the fields of a form, and takes their values', async () => {
  const fields = {
    type: 'object',
    properties: {
      zip: { type: 'string', title: 'Postcode', pattern: '^[0-9]{4}$' },
      carrier: { type: 'string', enum: ['post', 'rail'], default: 'post' },
      weight: { type: 'number' },
    },
    required: ['zip', 'carrier'],
  };
  const asks = { title: 'Ship it?', fields };
  const { body } = await tenant.post('/api/staged/v1.0/asks-person', { asks });
  const pending = async () => (await json(['approvals', '--job', body.job_id])).data[0];
  const { approval_id: id } = await waitFor(pending, { describe: 'the question' });
  const shown = await cli(['approvals', 'show', id]);
  expect(shown.stdout).toContain('field zip\tstring, required: Postcode\n');
  expect(shown.stdout).toContain('field carrier\tone of post, rail, required, default "post"\n');
  expect((await cli(['approvals', 'approve', id, 'weight=2'])).stderr).toContain('answer.zip');
  expect((await cli(['approvals', 'approve', id, 'zip=0150', 'weight=2'])).code).toBe(0);
  const answer = { zip: '0150', carrier: 'post', weight: 2 };
  expect(await json(['approvals', 'show', id])).toMatchObject({ status: 'approved', answer });
});

test('agents chat is one conversation, whose answers come as the model says them', async () => {
  expect((await tenant.post('/api/agents', { id: 'harbour', name: 'Harbour' })).status).toBe(201);
  expect((await cli(['agents'])).stdout).toContain('harbour\t');
  expect((await cli(['agents', 'show', 'harbour'])).code).toBe(0);
  world.provider.script(inTurn({ text: 'Good morning.' }, { text: 'Closed.' }));
  const talk = await cli(['agents', 'chat', 'harbour', '--json'], {
    stdin: 'Hello\nAnd Monday?\n',
  });
  const turns = talk.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(turns.map(({ answer }) => answer)).toEqual(['Good morning.', 'Closed.']);
  expect(new Set(turns.map((turn) => turn.conversation_id)).size).toBe(1);
  world.provider.script(answering('Yes.'));
  const spoken = await cli(['agents', 'chat', 'harbour', '--message', 'Open?']);
  expect(spoken).toEqual({ code: 0, stdout: 'Yes.\n', stderr: '' });
  expect((await cli(['agents', 'chat', 'nobody'])).code).toBe(1);
});

test('webhooks listen forwards what happens, which its receiver verifies, and goes on after a break', async () => {
  const received: { event: string | null; isSigned: boolean }[] = [];
  const interrupted = new AbortController();
  const breaks: AbortController[] = [];
  const secret = 'a-secret-of-the-receiver';
  const receive = async (url: unknown, init?: RequestInit) => {
    if (String(url) !== 'http://local/hooks') {
      const broken = new AbortController();
      breaks.push(broken);
      const signal = AbortSignal.any([broken.signal, ...(init?.signal ? [init.signal] : [])]);
      return fetch(String(url), { ...init, signal });
    }
    const headers = new Headers(init?.headers);
    const body = String(init?.body);
    const isSigned = headers.get('x-service-signature') === bodySignature(secret, body);
    const timestamp = Number(headers.get('webhook-timestamp'));
    const message = { id: headers.get('webhook-id') ?? '', timestamp, body };
    const signature = headers.get('webhook-signature') ?? '';
    const isStandard = isStandardSignature(signature, secret, message, Date.now());
    received.push({ event: headers.get('x-service-event'), isSigned: isSigned && isStandard });
    return new Response(null, { status: 204 });
  };
  const to = ['--forward-to', 'http://local/hooks', '--secret', secret];
  const options = { fetch: receive as typeof fetch, interrupted: interrupted.signal };
  const env = { SKILLWRIGHT_URL: world.platform.url, SKILLWRIGHT_API_KEY: tenant.key };
  const { io, stdout, stderr } = ioOf({ env, cwd: home, ...options });
  const listening = runCli({ io, version: '1.2.3', startPlatform: async () => {} }, [
    ...['webhooks', 'listen', ...to, '--events', 'skill.completed'],
  ]);
  const told = (text: string) => waitFor(() => stderr.text().includes(text), { describe: text });
  await told('Forwarding skill.completed to http://local/hooks');
  await tenant.run('util/v1.0/echo', { text: 'one' });
  await waitFor(() => received.length === 1, { describe: 'a forwarded event' });
  breaks[0]?.abort();
  await tenant.run('util/v1.0/echo', { text: 'two' });
  await waitFor(() => received.length === 2, { describe: 'the event of the break' });
  interrupted.abort();

  expect(await listening).toBe(130);
  const signed = { event: 'skill.completed', isSigned: true };
  expect(received).toEqual([signed, signed]);
  expect(stderr.text()).toContain('nothing was missed');
  expect(stdout.text()).toMatch(/^(skill\.completed\t[0-9a-f-]{36}\t204\n){2}$/);
});

test('login keeps a checked key in a file for its owner alone; profiles chooses among them', async () => {
  const env = { SKILLWRIGHT_API_KEY: undefined, SKILLWRIGHT_URL: undefined };
  const { url } = world.platform;
  const wrong = await cli(['login', '--url', url], { env, stdin: 'sk_wrong\n' });
  expect(wrong.code).toBe(5);
  expect(
    (await cli(['login', '--url', url, '--name', 'work'], { env, stdin: tenant.key })).code,
  ).toBe(0);
  await cli(['login', '--url', url, '--key', tenant.key, '--admin-secret', adminSecret], { env });
  const file = join(home, 'skillwright/config.json');
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(readFileSync(file, 'utf8')).toContain(tenant.key);
  const listed = await cli(['profiles'], { env });
  expect(listed.stdout).toBe(` \twork\t${url}\tno\n*\tdefault\t${url}\tyes\n`);
  expect(listed.stdout).not.toContain(tenant.key);
  expect((await cli(['profiles', 'use', 'work'], { env })).code).toBe(0);
  expect((await cli(['jobs'], { env })).code).toBe(0);
  expect((await cli(['profiles', 'remove', 'work'], { env })).code).toBe(0);
  expect((await cli(['profiles', 'use', 'work'], { env })).code).toBe(2);
});

test('keys create --save keeps the key as a profile, and --key-only prints nothing else', async () => {
  const env = { SKILLWRIGHT_API_KEY: undefined, XDG_CONFIG_HOME: mkdtempSync(join(home, 'own-')) };
  const create = ['keys', 'create', 'me', '--scopes', '*', '--organization', tenant.organization];

  const { stdout, stderr } = await cli([...create, '--save', '--key-only'], { env });

  expect(stdout).toMatch(/^sk_[\w-]{43}\n$/);
  expect(stderr).toContain('It is the profile default for http://127.0.0.1:');
  expect((await cli(['jobs'], { env })).code).toBe(0);
});

test('a key that cannot be saved is printed all the same', async () => {
  const own = mkdtempSync(join(home, 'own-'));
  const env = { SKILLWRIGHT_API_KEY: undefined, XDG_CONFIG_HOME: own };
  mkdirSync(join(own, 'skillwright', 'config.json.new'), { recursive: true });
  const create = ['keys', 'create', 'me', '--scopes', 'text, web', '--organization'];

  const { code, stdout } = await cli([...create, tenant.organization, '--save', '--key-only'], {
    env,
  });

  expect(code).not.toBe(0);
  expect(stdout).toMatch(/^sk_[\w-]{43}\n$/);
});

test('keys create --save replaces no unnamed profile of another platform', async () => {
  const own = mkdtempSync(join(home, 'own-'));
  const env = { SKILLWRIGHT_API_KEY: undefined, XDG_CONFIG_HOME: own };
  const file = join(own, 'skillwright', 'config.json');
  const kept = { url: 'https://elsewhere.example', key: 'sk_kept' };
  mkdirSync(join(own, 'skillwright'));
  writeFileSync(file, JSON.stringify({ current: 'other', profiles: { default: kept, other: {} } }));
  const create = ['keys', 'create', 'me', '--scopes', '*', '--organization', tenant.organization];
  const profiles = () => JSON.parse(readFileSync(file, 'utf8')).profiles;

  const refused = await cli([...create, '--save'], { env });
  expect(refused.code).toBe(2);
  expect(refused.stderr).toContain('https://elsewhere.example');
  expect(profiles().default).toEqual(kept);

  expect((await cli([...create, '--save', 'default'], { env })).code).toBe(0);
  expect(profiles().default.key).not.toBe(kept.key);
});

describe('help', () => {
  /** All commands, by the words that name them. */
  async function commands(words: string[] = []): Promise<string[][]> {
    const { stdout } = await cli(['__complete', '--', ...words, '']);
    const names = stdout.split('\n').filter(Boolean);
    // The words of a command without commands are those of its arguments.
    const own = words.at(-1) === 'completion' ? [] : names;
    const inner = await Promise.all(own.map((name) => commands([...words, name])));
    return [words, ...inner.flat()];
  }

  const isGroup = (all: string[][], words: string[]) =>
    all.some((one) => one.length > words.length && words.every((word, i) => one[i] === word));
  /** Commands that stay in the foreground, or print a script. */
  const withoutJson = ['start', 'dev', 'completion'];

  test('every command has an example, and --json but where it prints no result', async () => {
    const all = (await commands()).slice(1);
    expect(all.length).toBeGreaterThan(40);
    for (const words of all) {
      const { code, stdout } = await cli([...words, '--help']);
      expect({ code, stdout }).toMatchObject({
        code: 0,
        stdout: expect.stringMatching(/Examples?:\n {2}skillwright /),
      });
      const mayHaveNone = withoutJson.includes(words[0] ?? '');
      if (!mayHaveNone && !isGroup(all, words)) expect(stdout, words.join(' ')).toContain('--json');
    }
  });
});

test('completion prints scripts, and completes commands and options', async () => {
  for (const shell of ['bash', 'zsh', 'fish']) {
    expect((await cli(['completion', shell])).stdout).toContain('skillwright __complete --');
  }
  expect((await cli(['completion', 'tcsh'])).code).toBe(2);
  const complete = async (...words: string[]) => (await cli(['__complete', '--', ...words])).stdout;
  expect(await complete('jo')).toBe('jobs\n');
  expect(await complete('keys', '')).toBe('create\nlist\nrevoke\n');
  expect(await complete('completion', 'z')).toBe('zsh\n');
  expect(await complete('run', '--fo')).toBe('--follow\n');
  expect(await complete('keys', 'create', '--sc')).toBe('--scopes\n');
});
