import { spawnSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { MemoryQueue } from '../../src/adapters/queue/memory.ts';
import { createLogger } from '../../src/kernel/log.ts';
import { serviceUnavailable } from '../support/broken-database.ts';
import { adminSecret, embeddedTest, type Platform } from '../support/platform.ts';
import { sendRaw } from '../support/raw-http.ts';
import { acting, dataDirectory, gate, play, startStaged } from '../support/staged.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';
import { waitFor } from '../support/wait-for.ts';

let platform: Platform;
let tenant: Tenant;
beforeAll(async () => {
  platform = await startStaged({ environment: { WORKER_CONCURRENCY: '2' } });
  tenant = await newTenant(platform);
});
afterAll(() => platform.stop());

const echo = 'util/v1.0/echo';
const failing = acting({ fail: { message: 'no' } });
const queues = ['skill-execution', 'webhooks', 'scheduled-jobs'];

async function scrape(on: Platform = platform): Promise<string> {
  const answer = await on.request('GET', '/metrics');
  expect(answer.status).toBe(200);
  return answer.text;
}

/** The value of a series, written as in the text; 0 when there is none. */
function sample(text: string, series: string): number {
  const line = text.split('\n').find((one) => one.startsWith(`${series} `));
  return line === undefined ? 0 : Number(line.slice(series.length + 1));
}

const value = async (series: string) => sample(await scrape(), series);

/** Series of a family. */
const seriesOf = (text: string, name: string) =>
  text.split('\n').filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));

describe('GET /metrics', () => {
  test('is text/plain; version=0.0.4', async () => {
    const answer = await platform.request('GET', '/metrics');

    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4');
  });

  test.each([
    ['service_http_requests_total', 'counter'],
    ['service_http_request_duration_seconds', 'histogram'],
    ['service_queue_depth', 'gauge'],
    ['service_active_jobs', 'gauge'],
    ['service_waiting_jobs', 'gauge'],
    ['service_completed_jobs_total', 'counter'],
    ['service_failed_jobs_total', 'counter'],
    ['service_errors_total', 'counter'],
    ['service_job_duration_seconds', 'histogram'],
    ['service_database_pool_active', 'gauge'],
    ['service_database_pool_idle', 'gauge'],
    ['service_database_writable', 'gauge'],
    ['service_redis_connected', 'gauge'],
    ['service_model_calls_total', 'counter'],
    ['service_model_tokens_total', 'counter'],
    ['service_model_cost_usd_total', 'counter'],
    ['service_model_unpriced_calls_total', 'counter'],
    ['service_model_call_duration_seconds', 'histogram'],
    ['service_embedding_calls_total', 'counter'],
    ['service_memories_awaiting_vector', 'gauge'],
    ['service_oldest_due_job_age_seconds', 'gauge'],
    ['service_lease_expiries_total', 'counter'],
    ['service_outbox_lag_seconds', 'gauge'],
    ['service_webhook_backlog', 'gauge'],
    ['service_executor_deaths_total', 'counter'],
    ['service_event_loop_lag_seconds', 'gauge'],
    ['service_live_processes', 'gauge'],
    ['service_process_info', 'gauge'],
  ])('has the family %s, a %s', async (name, type) => {
    const text = await scrape();

    expect(text).toContain(`# TYPE ${name} ${type}\n`);
    expect(text).toMatch(new RegExp(`# HELP ${name} \\S`));
  });

  test('has no other family of the service', async () => {
    const families = (await scrape()).match(/^# TYPE service_\w+/gm);

    expect(families).toHaveLength(28);
  });

  test.each([
    ...['service_queue_depth', 'service_active_jobs', 'service_completed_jobs_total'],
    'service_failed_jobs_total',
  ])('%s has a series for each queue', async (name) => {
    const text = await scrape();

    expect(seriesOf(text, name)).toHaveLength(3);
    for (const queue of queues) expect(text).toContain(`${name}{queue="${queue}"} `);
  });

  test('calls of models have a series for each way to end, before there is a call', async () => {
    const series = seriesOf(await scrape(), 'service_model_calls_total');

    expect(series.sort()).toEqual(
      ['aborted', 'answered', 'credentials', 'refused', 'unavailable'].map(
        (outcome) => `service_model_calls_total{outcome="${outcome}"} 0`,
      ),
    );
  });

  test('the histograms have buckets labelled le', async () => {
    await tenant.run(echo, { text: 'x' });
    const text = await scrape();

    expect(text).toMatch(/^service_http_request_duration_seconds_bucket\{le="\+Inf"\} \d+$/m);
    expect(text).toMatch(
      /^service_job_duration_seconds_bucket\{(?=[^}]*queue="skill-execution")[^}]*le="0\.1"[^}]*\} \d+$/m,
    );
  });
});

describe('the text', () => {
  const promtool = spawnSync('promtool', ['--version']).error === undefined;
  if (!promtool && process.env['CI'] === 'true') {
    throw new Error('promtool is not installed, and with CI=true nothing is skipped.');
  }
  if (!promtool) {
    process.stderr.write(
      'promtool is not installed (Debian: apt-get install prometheus): one test is skipped.\n',
    );
  }

  test.skipIf(!promtool)('parses, and its names are as Prometheus wants them', async () => {
    await tenant.run(play, failing);
    await tenant.get('/api/nowhere');

    const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], {
      input: await scrape(),
      encoding: 'utf8',
    });

    expect({ status, output: `${stdout}${stderr}` }).toEqual({ status: 0, output: '' });
  });
});

describe('service_http_requests_total', () => {
  const series = (method: string, path: string, status: number) =>
    `service_http_requests_total{method="${method}",path="${path}",status="${status}"}`;
  const counts = async (name: string, send: () => Promise<unknown>) => {
    const before = await value(name);
    await send();
    // It is counted when the answer has left, which may be after it has arrived.
    await waitFor(async () => (await value(name)) === before + 1, { describe: `${name} grows` });
  };

  test('counts by method, route pattern and status', async () => {
    const { body: job } = await tenant.run(echo, { text: 'x' });

    await counts(series('GET', '/api/jobs/:jobId', 200), () =>
      tenant.get(`/api/jobs/${job.job_id}`),
    );
    await counts(series('GET', '/api/jobs/:jobId', 404), () => tenant.get('/api/jobs/x'));
    await counts(series('GET', '/api/jobs', 400), () => tenant.get('/api/jobs?limit=0'));
    await counts(series('PUT', '/api/agents/:agentId', 200), () =>
      tenant.put('/api/agents/default', { name: 'x' }),
    );
    await counts(series('POST', '/api/:category/:version/:skillName', 202), () =>
      tenant.post(`/api/${echo}`, { text: 'x' }),
    );
    await counts(series('GET', '/api/jobs', 401), () => platform.request('GET', '/api/jobs'));
    await counts(series('GET', '/api/jobs/:jobId/events', 200), () =>
      tenant.get(`/api/jobs/${job.job_id}/events`),
    );
  });

  test('the label path is never the raw path: random paths and methods add no series', async () => {
    await tenant.get('/api/nowhere');
    await platform.request('GET', '/nowhere');
    for (const method of ['TRACE', 'PROPFIND', 'BREW']) {
      await sendRaw(platform.url, `${method} /x HTTP/1.1\r\nHost: x\r\n\r\n`);
    }
    const random = async (i: number) => {
      const id = `${i}-${Math.random()}`;
      await tenant.get(`/api/agents/${id}`);
      await tenant.get(`/api/${id}?x=${id}`);
      await platform.request('GET', `/${id}/${id}`);
      await tenant.post(`/api/${id}/v1.0/${id}`, {});
      await tenant.get(`/api/agents/%zz${id}`);
    };
    await random(0);
    const before = (await scrape()).split('\n').length;

    for (let i = 1; i <= 10; i++) {
      await Promise.all(Array.from({ length: 20 }, (_, k) => random(i * 100 + k)));
    }

    const text = await scrape();
    // A status that came late may add its own.
    expect(text.split('\n').length).toBeLessThanOrEqual(before + 5);
    const paths = [...text.matchAll(/path="([^"]*)"/g)].map(([, path]) => path);
    expect(paths.every((path) => path === 'unmatched' || path?.startsWith('/'))).toBe(true);
    expect(text).not.toMatch(/path="[^"]*0\.\d/);
  });
});

describe('the metrics of jobs', () => {
  test('agree with the jobs that were run', async () => {
    const names = [
      'service_completed_jobs_total{queue="skill-execution"}',
      'service_failed_jobs_total{queue="skill-execution"}',
      'service_job_duration_seconds_count{queue="skill-execution"}',
      'service_errors_total{type="skill_execution_failed"}',
    ];
    const read = async () => {
      const text = await scrape();
      return names.map((name) => sample(text, name));
    };
    const before = await read();

    await Promise.all(Array.from({ length: 20 }, () => tenant.run(echo, { text: 'x' })));
    await Promise.all(Array.from({ length: 2 }, () => tenant.run(play, failing)));

    const after = await read();
    // The duration is of attempts; those that failed had three each.
    expect(after.map((n, i) => n - before[i]!)).toEqual([20, 2, 26, 6]);
    const text = await scrape();
    expect(sample(text, 'service_failed_jobs_total{queue="scheduled-jobs"}')).toBe(0);
    expect(sample(text, 'service_completed_jobs_total{queue="webhooks"}')).toBe(0);
  });

  test('a cancelled job is neither completed nor failed', async () => {
    const read = async () => {
      const text = await scrape();
      return ['completed', 'failed'].map((kind) =>
        sample(text, `service_${kind}_jobs_total{queue="skill-execution"}`),
      );
    };
    const before = await read();
    const end = gate();
    const jobId = await tenant.start(play, acting({ until: end.path }));
    await tenant.post(`/api/jobs/${jobId}/cancel`);
    await tenant.jobIn(jobId, 'cancelled');

    expect(await read()).toEqual(before);
  });

  test('depth and active jobs are those of this moment', async () => {
    const [depth, active] = ['service_queue_depth', 'service_active_jobs'].map(
      (name) => `${name}{queue="skill-execution"}`,
    ) as [string, string];
    const end = gate();
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) ids.push(await tenant.start(play, acting({ until: end.path })));
    await tenant.jobIn(ids[1]!, 'active');

    const held = await scrape();
    end.open();
    for (const id of ids) await tenant.jobIn(id, 'completed');
    const done = await scrape();

    expect([sample(held, active), sample(held, depth)]).toEqual([2, 3]);
    expect([sample(done, active), sample(done, depth)]).toEqual([0, 0]);
  });

  test('depth counts jobs queued before a restart', async () => {
    const end = gate();
    const environment = {
      DATA_DIR: dataDirectory(),
      WORKER_CONCURRENCY: '1',
      SHUTDOWN_GRACE_MS: '0',
    };
    const first = await startStaged({ environment });
    const other = await newTenant(first);
    for (let i = 0; i < 4; i++) await other.start(play, acting({ until: end.path }));
    await first.stop();

    const second = await startStaged({ environment });
    const families = ['service_queue_depth', 'service_active_jobs'];
    const series = families.map((family) => `${family}{queue="skill-execution"}`);
    /** Null where the database has not answered in time, which leaves the series out. */
    const counted = async () => {
      const text = await scrape(second);
      const isTold = series.every((one) => text.includes(`\n${one} `));
      return isTold ? { sum: series.reduce((sum, one) => sum + sample(text, one), 0) } : null;
    };
    const waiting = await waitFor(counted, { describe: 'jobs are counted' });
    end.open();
    await waitFor(async () => (await counted())?.sum === 0, { describe: 'all have run' });

    await second.stop();
    expect(waiting.sum).toBe(4);
  });
});

describe('service_errors_total', () => {
  test.each<[string, () => Promise<unknown>]>([
    ['validation_error', () => tenant.get('/api/jobs?limit=0')],
    ['authentication_required', () => platform.request('GET', '/api/jobs')],
    ['invalid_api_key', () => platform.request('GET', '/api/jobs', { key: 'x' })],
    ['not_found', () => tenant.get('/api/nowhere')],
    ['skill_not_found', () => tenant.post('/api/no/v1.0/skill', {})],
    ['method_not_allowed', () => tenant.delete('/api/jobs')],
    [
      'skill_execution_failed',
      () => tenant.run(play, acting({ fail: { message: 'x', retryable: false } })),
    ],
    [
      'missing_credentials',
      () =>
        tenant.run(
          play,
          acting({ fail: { message: 'x', code: 'missing_credentials', retryable: false } }),
        ),
    ],
  ])('counts by code: %s', async (code, cause) => {
    const name = `service_errors_total{type="${code}"}`;
    const before = await value(name);

    await cause();

    expect(await value(name)).toBe(before + 1);
  });
});

describe('the gauges of the stores', () => {
  test('service_redis_connected is 1 while the queue runs and 0 when it is down', async () => {
    const queue = new MemoryQueue(createLogger('silent'));
    let isDown = false;
    Object.assign(queue, { isConnected: () => !isDown });
    const other = await startStaged({ parts: { queue } });
    const up = sample(await scrape(other), 'service_redis_connected');
    isDown = true;
    const down = sample(await scrape(other), 'service_redis_connected');

    await other.stop();
    expect([up, down]).toEqual([1, 0]);
  });

  test('the pool has connections', async () => {
    const text = await scrape();
    const active = sample(text, 'service_database_pool_active');
    const idle = sample(text, 'service_database_pool_idle');

    expect(active + idle).toBeGreaterThanOrEqual(1);
  });

  test('while the database is down the other metrics are reported', async () => {
    const other = await startStaged();
    const { kysely } = other.database.read;
    kysely.selectFrom = (() => {
      throw serviceUnavailable();
    }) as never;

    const text = await scrape(other);

    await other.stop();
    expect(sample(text, 'service_redis_connected')).toBe(1);
    expect(text).toContain('# TYPE service_queue_depth gauge');
    expect(seriesOf(text, 'service_queue_depth')).toEqual([]);
  });

  embeddedTest('nor does a database that hangs hold them up', async () => {
    const other = await startStaged({ stores: 'embedded' });
    const { kysely } = other.database.read;
    const { selectFrom } = kysely;
    const hanging = new Proxy(
      {},
      {
        get: (_, name) =>
          name === 'execute'
            ? () => new Promise(() => {})
            : name === 'then'
              ? undefined
              : () => hanging,
      },
    );
    kysely.selectFrom = (() => hanging) as never;

    const text = await scrape(other);

    kysely.selectFrom = selectFrom;
    await other.stop();
    expect(sample(text, 'service_redis_connected')).toBe(1);
  });
});

test('counters only grow', async () => {
  const counters = (text: string) =>
    text
      .split('\n')
      .filter((line) => /^service_\w+_(total|count|bucket|sum)/.test(line))
      .map(
        (line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.split(' ').at(-1))] as const,
      );
  const before = counters(await scrape());

  await tenant.run(echo, { text: 'x' });
  await tenant.run(play, failing);

  const after = new Map(counters(await scrape()));
  for (const [name, n] of before) expect(after.get(name), name).toBeGreaterThanOrEqual(n);
});

test('there is no secret in it', async () => {
  await platform.request('GET', `/api/jobs?key=${tenant.key}`);
  await platform.request('GET', `/${tenant.key}`);
  await platform.request('GET', `/admin/${adminSecret}`);
  await tenant.get(`/api/agents/${tenant.key}`);
  const text = await scrape();

  expect(text).not.toContain(tenant.key);
  expect(text).not.toContain('sk_');
  expect(text).not.toContain(adminSecret);
});
