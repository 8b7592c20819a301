/**
 * The image, the compose file and the probe of deploy/ against the program: the environment that each process gets starts
 * one, the ports and probes agree, and nothing is cut off before its time. Longer than others: it is one list of what can
 * be read of them. Docker is not run here.
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { readConfig } from '../src/core/config/config.ts';
import { variables } from '../src/core/config/variables.ts';
import {
  type Environment,
  graceMs,
  readFile as read,
  root,
  stopMarginMs,
  unknownIn,
} from '../test/support/deploy.ts';

const run = promisify(execFile);

interface Service {
  readonly image: string;
  readonly build?: unknown;
  readonly command?: readonly string[];
  readonly environment?: Environment;
  readonly depends_on?: Record<string, { condition: string }>;
  readonly healthcheck?: { test: readonly string[] };
  readonly ports?: readonly string[];
  readonly stop_grace_period?: string;
}

const compose = parse(read('deploy/compose.yaml'), { merge: true }) as {
  services: Record<string, Service>;
  configs: Record<string, { content: string }>;
};
const services = Object.entries(compose.services);
/** Those that run the platform. */
const processes = services.filter(([, { build }]) => build !== undefined);
const secrets = { ADMIN_SECRET: 'a'.repeat(16), POSTGRES_PASSWORD: 'b', VALKEY_PASSWORD: 'c' };
const encryptionKey = 'ab'.repeat(32);

/** A text as Compose makes it of the variables in deploy/.env; throws where it would refuse to start. */
function interpolated(text: string, given: Environment): string {
  return text.replace(/\$\{(\w+)(?::([-?])([^}]*))?\}/g, (_all, name, kind, rest) => {
    const value = given[name] ?? '';
    if (value !== '') return value;
    if (kind === '?') throw new Error(`${name}: ${rest}`);
    return kind === '-' ? rest : '';
  });
}

const environmentOf = ({ environment = {} }: Service, given: Environment): Environment =>
  Object.fromEntries(
    Object.entries(environment).map(([name, value]) => [name, interpolated(value, given)]),
  );

const filledIn = { ...secrets, ENCRYPTION_KEY: encryptionKey };

describe('Compose', () => {
  test('runs 2 api, 2 workers and 1 scheduler', () => {
    const roles = processes.map(([, service]) => service.environment?.['ROLES']).sort();

    expect(roles).toEqual(['api', 'api', 'scheduler', 'worker', 'worker']);
  });

  test.each(processes)('gives %s an environment that starts it', (_name, service) => {
    const config = readConfig(environmentOf(service, filledIn));

    expect([...config.roles]).toEqual([service.environment?.['ROLES']]);
    expect(config).toMatchObject({
      isClustered: true,
      host: '0.0.0.0',
      databaseUrl: 'postgres://skillwright:b@postgres:5432/skillwright',
      redisUrl: 'redis://:c@valkey:6379',
    });
  });

  test.each(processes)('gives %s no variable that the program does not know', (_name, service) => {
    expect(unknownIn(Object.keys(service.environment ?? {}))).toEqual([]);
  });

  test.each(Object.keys(filledIn))('refuses to start while %s is empty', (name) => {
    const given = { ...filledIn, [name]: '' };
    const start = () => {
      for (const [, service] of services) environmentOf(service, given);
      for (const { content } of Object.values(compose.configs)) interpolated(content, given);
    };

    expect(start).toThrow(`${name}: set it in deploy/.env`);
  });

  test('has an example of its variables, with no secret in it', () => {
    const lines = read('deploy/env.example').match(/^#?[A-Z_]+=.*$/gm) ?? [];
    const names = lines.map((line) => line.replace(/^#/, '').split('=')[0] as string);

    expect(lines.filter((line) => !line.startsWith('#')).sort()).toEqual(
      Object.keys(filledIn)
        .map((name) => `${name}=`)
        .sort(),
    );
    const ofCompose = ['PUBLISHED_PORT', 'POSTGRES_PASSWORD', 'VALKEY_PASSWORD'];
    expect(unknownIn(names).filter((name) => !ofCompose.includes(name))).toEqual([]);
  });

  test('starts processes when both stores are healthy, which they can tell', () => {
    for (const [, { depends_on }] of processes) {
      expect(depends_on).toEqual({
        postgres: { condition: 'service_healthy' },
        valkey: { condition: 'service_healthy' },
      });
    }
    expect(compose.services['postgres']?.healthcheck?.test.join(' ')).toContain('pg_isready');
    expect(compose.services['valkey']?.healthcheck?.test.join(' ')).toContain('valkey-cli ping');
  });

  test('stops no process before its runs have had their time', () => {
    for (const [, { stop_grace_period = '10s' }] of processes) {
      expect(Number.parseInt(stop_grace_period, 10) * 1000).toBeGreaterThan(graceMs + stopMarginMs);
    }
  });

  test('publishes nothing beyond this machine', () => {
    for (const [, { ports = [] }] of services) {
      for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:/);
    }
  });

  test('lets PostgreSQL have the connections of all processes, twice while they are replaced', () => {
    const [, most] = /max_connections=(\d+)/.exec(
      compose.services['postgres']?.command?.join(' ') ?? '',
    ) as RegExpExecArray;

    const wanted = processes.length * Number(variables.databasePoolMax.default);
    expect(Number(most)).toBeGreaterThanOrEqual(2 * wanted);
  });
});

describe('the image', () => {
  const dockerfile = read('deploy/Dockerfile').replace(/\\\n/g, ' ');
  const instruction = (name: string) =>
    [...dockerfile.matchAll(new RegExp(`^${name}\\s+(.*)$`, 'gm'))].map(([, text = '']) => text);
  const environment: Environment = Object.fromEntries(
    instruction('ENV').flatMap((text) =>
      text
        .trim()
        .split(/\s+/)
        .map((pair) => pair.split('=')),
    ),
  );

  test('starts the command of the package, and nothing between it and a signal', () => {
    expect(JSON.parse(instruction('ENTRYPOINT')[0] as string)).toEqual([
      ...['tini', '--'],
      'skillwright',
    ]);
  });

  test('runs as a user other than root', () => {
    expect(instruction('USER')).toEqual(['10001:10001']);
    expect(dockerfile).toContain('useradd --uid 10001');
  });

  test('runs the version of this checkout', () => {
    const { version } = JSON.parse(read('package.json'));
    const { images } = parse(read('deploy/kubernetes/kustomization.yaml'));
    const chart = parse(read('deploy/helm/skillwright/Chart.yaml'));

    expect([images[0].newTag, chart.version, chart.appVersion]).toEqual([
      version,
      version,
      version,
    ]);
  });

  test('has no variable that the program does not know', () => {
    const others = ['PATH', 'NODE_COMPILE_CACHE'];

    expect(unknownIn(Object.keys(environment)).filter((name) => !others.includes(name))).toEqual(
      [],
    );
  });

  test('copies only what there is and what its context lets through', () => {
    const allowed = read('.dockerignore')
      .split('\n')
      .filter((line) => line.startsWith('!'))
      .map((line) => line.slice(1));
    const copied = instruction('COPY')
      .filter((text) => !text.startsWith('--from'))
      .flatMap((text) => text.split(' ').slice(0, -1));

    expect(new Set(copied)).toEqual(new Set(allowed));
    expect(copied.filter((path) => !(path.includes('*') || existsSync(join(root, path))))).toEqual(
      [],
    );
  });

  test('is asked on the port that it listens on', () => {
    expect(environment['PORT']).toBe(variables.port.default);
    expect(instruction('EXPOSE')).toEqual([environment['PORT']]);
    expect(instruction('HEALTHCHECK')[0]).toContain('CMD ["node", "probe.ts"]');
  });
});

describe('the command of a checkout', () => {
  test('starts the program with the words of npm start', async () => {
    const { scripts } = JSON.parse(read('package.json'));
    const { platform, arch } = process;
    const directory = withNode(`node_modules/node-${platform}-${arch}`, 'program');
    mkdirSync(join(directory, 'node_modules/.bin'));
    symlinkSync(process.execPath, join(directory, 'node_modules/.bin/node'));
    for (const name of ['skillwright', 'package.json', 'bin']) {
      cpSync(join(root, name), join(directory, name), { recursive: true });
    }

    const { stdout } = await run(join(directory, 'skillwright'));

    expect(`node ${stdout.trim().replace(`${directory}/`, '')}`).toBe(scripts.start);
  });

  test('and the command of the package starts it with the same words', async () => {
    const { scripts } = JSON.parse(read('package.json'));
    const { platform, arch } = process;
    const directory = withNode(`node_modules/node-${platform}-${arch}`, 'program');
    cpSync(join(root, 'bin'), join(directory, 'bin'), { recursive: true });

    const { stdout } = await run(process.execPath, [join(directory, 'bin/skillwright.js')]);

    expect(`node ${stdout.trim().replace(`${directory}/`, '')}`).toBe(scripts.start);
  });

  test('passes its arguments on, so that it is the command of a checkout', async () => {
    const { stdout } = await run(join(root, 'skillwright'), ['run', '--help']);

    expect(stdout).toContain('Usage: skillwright run');
  });

  test('and says what to do where nothing is installed', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'skillwright-words-'));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    cpSync(join(root, 'skillwright'), join(directory, 'skillwright'));

    await expect(run(join(directory, 'skillwright'))).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^Nothing is installed in \S+: run npm install there\.\n$/),
    });
  });

  test.each(['packages', 'demo'])('npm run %s says what to do, too', async (script) => {
    const directory = mkdtempSync(join(tmpdir(), 'skillwright-words-'));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    mkdirSync(join(directory, 'scripts'));
    for (const name of ['package.json', 'scripts/require-install.js']) {
      cpSync(join(root, name), join(directory, name));
    }

    await expect(run('npm', ['run', script], { cwd: directory })).rejects.toMatchObject({
      stderr: expect.stringContaining(
        'Nothing is installed in this checkout yet: run npm install first.',
      ),
    });
  });

  test('starts it from any working directory, with its exit code', async () => {
    const env = { PATH: process.env['PATH'], PORT: 'none' };
    const child = spawn(join(root, 'skillwright'), {
      ...{ cwd: tmpdir(), env, stdio: ['ignore', 'ignore', 'pipe'] as const },
    });
    const reason = text(child.stderr);

    expect(await once(child, 'exit')).toEqual([1, null]);
    expect(await reason).toContain('PORT="none"');
  });
});

describe('the ports', () => {
  test('that the balancer and Prometheus look for are those of the processes', () => {
    const addresses = (chosen: typeof processes) =>
      chosen.map(([name, { environment }]) => `${name}:${environment?.['PORT']}`);
    const apis = processes.filter(([, { environment }]) => environment?.['ROLES'] === 'api');
    const balancer = read('deploy/haproxy.cfg');
    const upstreams = [...balancer.matchAll(/^ {2}server \S+ (\S+)$/gm)].map(([, at]) => at);
    const [job] = parse(read('deploy/prometheus/prometheus.yml')).scrape_configs;

    expect(upstreams).toEqual(addresses(apis));
    expect(job.static_configs[0].targets.toSorted()).toEqual(addresses(processes).sort());
  });

  test('that the balancer listens on is the one that is published', () => {
    const [published = ''] = compose.services['balancer']?.ports ?? [];

    expect(interpolated(published, {})).toBe('127.0.0.1:8080:8080');
    expect(read('deploy/haproxy.cfg')).toMatch(/^ {2}bind :8080$/m);
  });
});

describe('the probe', () => {
  async function ask(listener: RequestListener | null, ...flags: string[]) {
    const server = createServer(listener ?? (() => {}));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    if (listener === null) server.close();
    onTestFinished(() => {
      server.close();
      server.closeAllConnections();
    });
    const probe = spawn(process.execPath, [join(root, 'deploy/probe.ts'), ...flags], {
      env: { PORT: String(port) },
      stdio: 'ignore',
    });
    const [code] = await once(probe, 'exit');
    return code;
  }
  const answering =
    (status: number): RequestListener =>
    (request, response) =>
      response.writeHead(request.url === '/health' ? status : 404).end('{}');

  test.each([
    ['of use when /health is 200', answering(200), [], 0],
    ['of no use when /health is 503', answering(503), [], 1],
    ['not ready when no process listens', null, [], 1],
    ['alive when /health is 200', answering(200), ['--answers'], 0],
    ['alive when /health is 503', answering(503), ['--answers'], 0],
    ['dead when no process listens', null, ['--answers'], 1],
    ['dead when no answer comes', () => {}, ['--answers'], 1],
  ] as const)('says that a process is %s', async (_is, listener, flags, code) => {
    expect(await ask(listener, ...flags)).toBe(code);
  });
});

/** A directory in which a program that prints its arguments stands for Node: in `folder`, a package or not. */
function withNode(folder: string, name: string): string {
  const directory = mkdtempSync(join(tmpdir(), 'skillwright-words-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  mkdirSync(join(directory, folder), { recursive: true });
  writeFileSync(join(directory, folder, name), '#!/bin/sh\necho "$@"\n', { mode: 0o755 });
  const manifest = JSON.stringify({ bin: { node: name } });
  writeFileSync(join(directory, folder, 'package.json'), manifest);
  return directory;
}
