/**
 * deploy/kubernetes and the chart of deploy/helm against the program and the types of the Kubernetes API. kubectl renders
 * the chart, because its templates are Go's alone; neither Helm nor a cluster is run here.
 */
import { execFile } from 'node:child_process';
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Ajv } from 'ajv';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { readConfig } from '../src/core/config/config.ts';
import { memoryAllowanceMb } from '../src/core/executors/memory-limit.ts';
import {
  type Environment,
  graceMs,
  hasProgram,
  readFile,
  root,
  stopMarginMs,
  unknownIn,
} from '../test/support/deploy.ts';

const run = promisify(execFile);

interface Container {
  readonly env: readonly { name: string; value: string }[];
  readonly envFrom: unknown;
  readonly ports: readonly { name: string; containerPort: number }[];
  readonly livenessProbe: { exec: { command: readonly string[] }; timeoutSeconds: number };
  readonly readinessProbe?: { tcpSocket: { port: string } };
  readonly lifecycle: { preStop: { exec: { command: readonly string[] } } };
  readonly resources: { limits: { memory: string } };
  readonly volumeMounts: readonly { name: string; mountPath: string }[];
}
interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { name: string };
  readonly data?: Environment;
  readonly stringData?: Environment;
  // biome-ignore lint/suspicious/noExplicitAny: as many shapes as kinds
  readonly spec: any;
}

const folder = join(root, 'deploy/kubernetes');
const manifestsIn = (file: string) => manifestsOf(readFileSync(join(folder, file), 'utf8'));
const resources: string[] = parse(readFile('deploy/kubernetes/kustomization.yaml')).resources;
const manifests = resources.flatMap(manifestsIn);
const [secret] = manifestsIn('secret.example.yaml') as [Manifest];

describe('Kubernetes', () => {
  const config = manifests.find(({ kind }) => kind === 'ConfigMap')?.data as Environment;
  const deployments = manifests
    .filter(({ kind }) => kind === 'Deployment')
    .map((one) => {
      const pod = one.spec.template;
      return { name: one.metadata.name, one, pod, container: pod.spec.containers[0] as Container };
    });
  /** The environment of a container, whose mounted files of secrets have `stringData` in them. */
  const environmentIn = (container: Container, stringData: Environment): Environment => {
    const mounted = mkdtempSync(join(tmpdir(), 'skillwright-secrets-'));
    onTestFinished(() => rmSync(mounted, { recursive: true }));
    for (const [name, value] of Object.entries(stringData)) {
      writeFileSync(join(mounted, name), value);
    }
    const { mountPath } = container.volumeMounts.find(({ name }) => name === 'secrets')!;
    const own = Object.fromEntries(container.env.map(({ name, value }) => [name, value]));
    return Object.fromEntries(
      Object.entries({ ...config, ...own }).map(([name, value]) => {
        return [name, value.replace(mountPath, mounted)];
      }),
    );
  };
  const stores = {
    DATABASE_URL: 'postgres://u:p@db.example:5432/skillwright',
    REDIS_URL: 'redis://:p@queue.example:6379',
    ADMIN_SECRET: 'a'.repeat(16),
    ENCRYPTION_KEY: 'ab'.repeat(32),
  };

  test('applies every file there is, but for the example of a secret', () => {
    const files = globSync('*.yaml', { cwd: folder });

    expect([...resources, 'kustomization.yaml', 'secret.example.yaml'].sort()).toEqual(
      files.sort(),
    );
  });

  test('has the fields of the Kubernetes API, and no others', async () => {
    expect(await typeFaults([...manifests, secret])).toBe('');
    const [first] = deployments;
    const misspelt = { ...first?.one, spec: { ...first?.one.spec, replica: 1 } };
    expect(await typeFaults([misspelt as Manifest])).toContain('"replica"');
  });

  test('has a Deployment for each role', () => {
    const roles = deployments.map(({ container }) => environmentIn(container, stores)['ROLES']);

    expect(roles.sort()).toEqual(['api', 'scheduler', 'worker']);
  });

  test('asks for exactly the secrets that there is an example of, all of them empty', () => {
    expect(secret.stringData).toEqual(
      Object.fromEntries(Object.keys(stores).map((name) => [name, ''])),
    );
  });

  test.each(deployments)('gives $name an environment that starts it', ({ container }) => {
    const environment = environmentIn(container, stores);

    expect(container.envFrom).toEqual([{ configMapRef: { name: 'skillwright' } }]);
    expect(unknownIn(Object.keys(environment))).toEqual([]);
    expect(readConfig(environment)).toMatchObject({ isClustered: true, host: '0.0.0.0' });
  });

  test.each(deployments)('starts no $name with a secret left empty', ({ container }) => {
    const start = () => readConfig(environmentIn(container, secret.stringData ?? {}));

    for (const name of Object.keys(stores)) expect(start).toThrow(name);
  });

  test.each(deployments)('asks $name where it listens', ({ container }) => {
    expect(container.ports).toEqual([{ name: 'http', containerPort: Number(config['PORT']) }]);
    expect(container.readinessProbe?.tcpSocket.port ?? 'http').toBe('http');
  });

  test.each(deployments)('restarts no $name because a store is away', ({ container }) => {
    const [program, file, ...flags] = container.livenessProbe.exec.command;

    expect(program).toBe('node');
    expect(file).toBe('probe.ts');
    expect(flags).toEqual(['--answers']);
  });

  test.each(deployments)('stops no $name before its runs have had their time', (deployment) => {
    const { pod, container } = deployment;
    const [program, seconds] = container.lifecycle.preStop.exec.command;

    expect(program).toBe('sleep');
    expect(config['SHUTDOWN_GRACE_MS']).toBe(String(graceMs));
    expect(pod.spec.terminationGracePeriodSeconds * 1000).toBeGreaterThan(
      Number(seconds) * 1000 + graceMs + stopMarginMs,
    );
  });

  test.each(deployments)('finds the Pods of $name, and no others', ({ one, pod }) => {
    expect(pod.metadata.labels).toEqual(one.spec.selector.matchLabels);
    expect(Object.keys(pod.metadata.labels)).toContain('app.kubernetes.io/component');
  });

  test.each([
    ['Service', 'api'],
    ['PodDisruptionBudget', 'api'],
    ['PodDisruptionBudget', 'worker'],
  ])('has a %s of %s that finds its Pods', (kind, role) => {
    const labels = {
      'app.kubernetes.io/name': 'skillwright',
      'app.kubernetes.io/component': role,
    };
    const found = manifests
      .filter((one) => one.kind === kind)
      .map(({ spec }) => spec.selector.matchLabels ?? spec.selector);

    expect(found).toContainEqual(labels);
  });

  test('scales the workers that there are', () => {
    const { spec } = manifests.find(({ kind }) => kind === 'HorizontalPodAutoscaler') as Manifest;
    const worker = deployments.find(({ name }) => name === spec.scaleTargetRef.name);

    // Replicas of its own would undo, at every apply, what the autoscaler has decided.
    expect(worker?.one.spec).not.toHaveProperty('replicas');
  });

  test('lets a worker have the memory that the platform lets its executors have', () => {
    const { container } = deployments.find(({ name }) => name === 'skillwright-worker')!;
    const { EXECUTORS, EXECUTOR_MEMORY_MB } = environmentIn(container, stores);
    const executors = Number(EXECUTORS) + 1;
    const limit = Number.parseInt(container.resources.limits.memory, 10);

    expect(container.resources.limits.memory).toMatch(/Mi$/);
    expect(limit).toBeGreaterThan(executors * (Number(EXECUTOR_MEMORY_MB) + memoryAllowanceMb));
  });
});

describe.skipIf(!hasProgram('kubectl'))('the chart', () => {
  const chart = join(root, 'deploy/helm/skillwright');
  const { image, ...values } = parse(readFile('deploy/helm/skillwright/values.yaml'));

  /** What the templates make of values, rendered as templates of Go, which Helm's are. */
  async function rendered(given: object): Promise<Manifest[]> {
    const { appVersion } = parse(readFile('deploy/helm/skillwright/Chart.yaml'));
    const input = {
      ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'input' } },
      Values: { image, ...values, ...given },
      Chart: { AppVersion: appVersion },
      Release: { Name: 'skillwright' },
    };
    const folder = mkdtempSync(join(tmpdir(), 'skillwright-chart-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const file = join(folder, 'input.json');
    writeFileSync(file, JSON.stringify(input));
    const templates = globSync('templates/*.yaml', { cwd: chart }).sort();
    const texts = await Promise.all(
      templates.map((name) => {
        const output = `go-template-file=${join(chart, name)}`;
        return run('kubectl', ['annotate', '--local', '-f', file, 'a=b', '-o', output]);
      }),
    );
    return texts.flatMap(({ stdout }) => manifestsOf(stdout));
  }

  test('makes what deploy/kubernetes applies, of its default values', async () => {
    const [{ newName, newTag }] = parse(readFile('deploy/kubernetes/kustomization.yaml')).images;
    const applied = JSON.stringify(manifests).replaceAll(
      '"image":"skillwright"',
      `"image":"${newName}:${newTag}"`,
    );
    const named = (all: readonly Manifest[]) =>
      Object.fromEntries(all.map((one) => [`${one.kind} ${one.metadata.name}`, one]));

    expect(named(await rendered({}))).toEqual(named(JSON.parse(applied)));
  });

  test('makes fields of the Kubernetes API of other values, too', async () => {
    const { worker, ...others } = values.roles;
    const { autoscaling: _one, maxUnavailable: _other, ...fixed } = worker;
    const made = await rendered({
      image: { repository: 'here', tag: '1' },
      config: { ...values.config, PORT: '3001', LOG_LEVEL: 'a "quoted" word' },
      roles: { ...others, worker: { ...fixed, replicas: 3, env: {} } },
    });

    expect(await typeFaults(made)).toBe('');
    const found = made.find(({ metadata }) => metadata.name === 'skillwright-worker');
    expect(found).toMatchObject({ kind: 'Deployment', spec: { replicas: 3 } });
    expect(JSON.stringify(found)).toContain('"image":"here:1"');
    const config = made.find(({ kind }) => kind === 'ConfigMap');
    expect(config?.data).toMatchObject({ LOG_LEVEL: 'a "quoted" word' });
    expect(made.map(({ kind }) => kind)).not.toContain('HorizontalPodAutoscaler');
  });

  test('has values that its schema accepts, and refuses names that there are not', () => {
    const isValid = new Ajv().compile(
      JSON.parse(readFile('deploy/helm/skillwright/values.schema.json')),
    );

    expect(isValid({ image, ...values }), JSON.stringify(isValid.errors)).toBe(true);
    expect(isValid({ image, ...values, replicas: 2 })).toBe(false);
    expect(isValid({ image, ...values, config: { PORT: 3000 } })).toBe(false);
  });
});

function manifestsOf(text: string): Manifest[] {
  return parseAllDocuments(text)
    .map((document) => document.toJS() as Manifest | null)
    .filter((one) => one !== null);
}

const groups: Record<string, string> = {
  v1: 'core/v1',
  'apps/v1': 'apps/v1',
  'policy/v1': 'policy/v1',
  'autoscaling/v2': 'autoscaling/v2',
};

/** What the compiler says of the manifests as literals of the types of the API, which have no other fields. */
async function typeFaults(all: readonly Manifest[]): Promise<string> {
  // Beside node_modules, where the compiler finds the types.
  const folder = mkdtempSync(join(root, 'node_modules/.cache-kubernetes-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const lines = all.map((one, index) => {
    const { apiVersion, kind } = one;
    const place = `kubernetes-types/${groups[apiVersion]}.js`;
    return `export const a${index}: import('${place}').${kind} = ${JSON.stringify(one)};`;
  });
  const file = join(folder, 'manifests.ts');
  writeFileSync(file, lines.join('\n'));
  const options = [
    '--ignoreConfig',
    '--noEmit',
    '--strict',
    '--skipLibCheck',
    '--types',
    '',
    '--module',
    'nodenext',
  ];
  const { stdout } = await run(join(root, 'node_modules/.bin/tsc'), [...options, file]).catch(
    (error: { stdout: string }) => error,
  );
  return stdout;
}
