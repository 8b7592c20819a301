/** The address that a start would listen on. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { Config } from '../../config/config.ts';
import type { Io } from '../io.ts';
import { type Finding, fault, ok, warning } from './finding.ts';

const check = 'port';
const healthMs = 3_000;

interface PortDeps extends Pick<Io, 'fetch'> {
  /** Of this program. */
  readonly version: string;
}

export async function checkPort(config: Config, deps: PortDeps): Promise<Finding[]> {
  const { host, port } = config;
  if (!config.roles.has('api')) return [];
  const error = await failureToListen(host, port);
  if (error === null) return [ok(check, `${host}:${port} is free`)];
  if (error.code === 'EADDRINUSE') return [await checkOccupant(config, deps)];
  if (error.code === 'EACCES') {
    return [fault(check, `This user may not listen on port ${port}`, 'set PORT to one above 1023')];
  }
  const message = `${host} cannot be listened on (${error.code ?? error.message})`;
  return [fault(check, message, 'set HOST to an address of this machine')];
}

async function failureToListen(host: string, port: number): Promise<NodeJS.ErrnoException | null> {
  const server = createServer();
  try {
    server.listen({ host, port, exclusive: true });
    await once(server, 'listening');
    return null;
  } catch (error) {
    return error as NodeJS.ErrnoException;
  } finally {
    server.close();
  }
}

/** Who has the port: a platform, which is as it should be, or another program. */
async function checkOccupant({ host, port }: Config, deps: PortDeps): Promise<Finding> {
  const address = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
  const at = address.includes(':') ? `[${address}]` : address;
  const health = await healthOf(`http://${at}:${port}/health`, deps);
  if (health === null) {
    const message = `Port ${port} is in use by another program`;
    return fault(check, message, 'stop it, or set PORT to a free one');
  }
  const { status, version } = health;
  if (status === 'unhealthy') {
    const message = `The platform on port ${port} is unhealthy`;
    return fault(check, message, 'its log says which store it cannot reach');
  }
  if (version !== deps.version) {
    const message = `The platform on port ${port} is version ${version}, this is ${deps.version}`;
    return warning('version', message, 'restart it');
  }
  return ok(check, `A platform of version ${version} runs on port ${port}`);
}

async function healthOf(
  url: string,
  { fetch }: PortDeps,
): Promise<{ status: string; version: string } | null> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(healthMs) });
    const { status, version } = (await response.json()) as Record<string, unknown>;
    return typeof status === 'string' && typeof version === 'string' ? { status, version } : null;
  } catch {
    return null;
  }
}
