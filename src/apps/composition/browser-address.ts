/** The address of the platform in the browser of a person, to which authorization servers send it back. */
import type { FastifyRequest } from 'fastify';
import type { Config } from '../../core/config/config.ts';
import { PlatformError } from '../../kernel/errors.ts';
import { Hosts } from '../../platform/mcp/hosts.ts';

/** PUBLIC_URL, else the origin of the page, whose host must be one of the platform's. */
export function browserAddress(config: Pick<Config, 'publicUrl' | 'mcpHosts'>) {
  const { publicUrl } = config;
  const hosts = new Hosts(publicUrl, config.mcpHosts, null);
  return ({ headers: { origin, host } }: FastifyRequest): string => {
    if (publicUrl !== null) {
      if (origin === undefined || origin === new URL(publicUrl).origin) return publicUrl;
      throw conflict(`Open the console at ${publicUrl}: authorization servers send you back there`);
    }
    const base = origin ?? `http://${host}`;
    if (URL.parse(base)?.origin === base && hosts.isOrigin(base, host)) return base;
    throw conflict(
      'The address of this page is not known to be that of the platform: set PUBLIC_URL',
    );
  };
}

const conflict = (message: string) => new PlatformError('conflict', message);
