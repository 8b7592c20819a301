/**
 * Alerts, dashboard and documents against the platform: what they name is there, what they say is valid.
 * That alerts fire when they should is in test/faults/alerts.test.ts.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { variables } from '../../src/core/config/variables.ts';
import { type Platform, startPlatform } from '../support/platform.ts';
import { prometheusFolder, promtool } from '../support/prometheus.ts';
import { isInstalled } from '../support/shared-servers.ts';

const root = join(import.meta.dirname, '../..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly for: string;
  readonly labels: Record<string, string>;
  readonly annotations: Record<string, string>;
}

interface RuleTest {
  readonly alert_rule_test: readonly { alertname: string; exp_alerts: readonly unknown[] }[];
}

interface Panel {
  readonly title: string;
  readonly targets?: readonly { expr: string }[];
}

const groups: readonly { rules: readonly Rule[] }[] = parse(
  read('deploy/prometheus/alerts.yml'),
).groups;
const rules = groups.flatMap((group) => group.rules);
const dashboard = JSON.parse(read('deploy/grafana/skillwright.json')) as { panels: Panel[] };
const panels = dashboard.panels.filter(({ targets }) => targets !== undefined);
/** As Prometheus reads them; Grafana puts a time in place of its own variable. */
const queries = panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr }) => ({ title, expr: expr.replaceAll('$__rate_interval', '1m') })),
);
const expressions = [
  ...rules.map(({ alert, expr }) => ({ name: alert, expr })),
  ...queries.map(({ title, expr }) => ({ name: title, expr })),
];

describe.skipIf(!(await isInstalled('Prometheus')))('promtool', () => {
  test('takes the configuration and the rules', () => {
    const { status, output } = promtool('check', 'config', 'prometheus.yml');

    expect({ status, output }).toMatchObject({ status: 0 });
    expect(output).toContain(`${rules.length} rules found`);
  });

  test('finds that each alert fires or stays silent as its cases say', () => {
    expect(promtool('test', 'rules', 'alerts.test.yml')).toMatchObject({ status: 0 });
  });

  test('reads every expression of the dashboard', () => {
    const directory = mkdtempSync(join(tmpdir(), 'skillwright-dashboard-'));
    onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
    const file = join(directory, 'rules.yml');
    const recorded = queries.map(({ expr }, i) => ({ record: `dashboard:query:${i}`, expr }));
    // JSON is YAML.
    writeFileSync(file, JSON.stringify({ groups: [{ name: 'dashboard', rules: recorded }] }));

    expect(promtool('check', 'rules', file)).toMatchObject({ status: 0 });
  });
});

describe('every alert', () => {
  test('has a name of its own', () => {
    expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
  });

  test.each(rules)('$alert says how long, how severe, and what is the matter', (rule) => {
    expect(rule.for).toMatch(/^\d+[smh]$/);
    expect(rule.labels).toEqual({ severity: expect.stringMatching(/^(critical|warning)$/) });
    expect(Object.keys(rule.annotations)).toEqual(['summary', 'description', 'runbook']);
  });

  test.each(rules)('$alert leads to its heading in the document for operators', (rule) => {
    const { alert, annotations } = rule;

    expect(annotations['runbook']).toBe(`docs/operations.md#${alert.toLowerCase()}`);
    expect(read('docs/operations.md').split('\n')).toContain(`### ${alert}`);
  });

  test.each(rules)('$alert has a case in which it fires', ({ alert }) => {
    const { tests } = parse(readFileSync(join(prometheusFolder, 'alerts.test.yml'), 'utf8'));
    const fires = (tests as RuleTest[]).some((one) =>
      one.alert_rule_test.some((at) => at.alertname === alert && at.exp_alerts.length > 0),
    );

    expect(fires).toBe(true);
  });
});

test('the document for operators explains only existing alerts', () => {
  const explained = [...read('docs/operations.md').matchAll(/^### (Skillwright\w+)$/gm)];

  expect(explained.map(([, name]) => name).sort()).toEqual(rules.map(({ alert }) => alert).sort());
});

describe('the metrics that are named', () => {
  let platform: Platform;
  let families: Map<string, string>;
  beforeAll(async () => {
    platform = await startPlatform();
    const { text } = await platform.request('GET', '/metrics');
    families = new Map(
      [...text.matchAll(/^# TYPE (\w+) (\w+)$/gm)].map(([, name, type]) => [name!, type!]),
    );
  });
  afterAll(() => platform.stop());

  test.each(expressions)('by $name are those of a platform that runs', ({ expr }) => {
    const names = expr.match(/\bservice_\w+/g) ?? [];
    const unknown = names.filter((name) => {
      const family = name.replace(/_(bucket|sum|count)$/, '');
      return !(families.has(name) || families.get(family) === 'histogram');
    });

    expect(unknown).toEqual([]);
    expect(names.length > 0 || /\bup\{/.test(expr)).toBe(true);
  });

  test.each(expressions)('by $name are of this job alone', ({ expr }) => {
    for (const [, labels = ''] of expr.matchAll(/\b(?:service_\w+|up)(\{[^}]*\})?/g)) {
      expect(labels).toContain('job="skillwright"');
    }
  });
});

test.each(expressions)('$name does not sum a value that every process reports', ({ expr }) => {
  const ofTheDatabase = [
    ...['service_queue_depth', 'service_active_jobs', 'service_waiting_jobs'],
    'service_oldest_due_job_age_seconds',
    ...['service_outbox_lag_seconds', 'service_webhook_backlog', 'service_live_processes'],
  ];
  const added = expr.matchAll(/\b(?:sum|avg|count)(?: by \([^)]*\))? ?\((?:\w+\()?(\w+)/g);

  for (const [, metric] of added) expect(ofTheDatabase).not.toContain(metric);
});

test('an exhausted pool is one with as many connections as it may have', () => {
  const rule = rules.find(({ alert }) => alert === 'SkillwrightPoolExhausted');

  expect(rule?.expr).toContain(
    `service_database_pool_active{job="skillwright"} >= ${variables.databasePoolMax.default}`,
  );
});

test('the dashboard has a panel for each thing that operators look for', () => {
  const named = new Set(queries.flatMap(({ expr }) => expr.match(/\bservice_\w+/g) ?? []));

  expect([...named]).toEqual(
    expect.arrayContaining([
      'service_http_requests_total',
      'service_http_request_duration_seconds_bucket',
      'service_queue_depth',
      'service_oldest_due_job_age_seconds',
      'service_active_jobs',
      'service_errors_total',
      'service_lease_expiries_total',
      'service_outbox_lag_seconds',
      'service_webhook_backlog',
      'service_executor_deaths_total',
      'service_event_loop_lag_seconds',
      'service_database_pool_active',
      'service_redis_connected',
      'service_live_processes',
      'service_model_calls_total',
      'service_model_tokens_total',
    ]),
  );
});
