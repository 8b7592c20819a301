/** The address of the platform in the browser of a person, to which authorization servers send it back. */
import type { FastifyRequest } from 'fastify';
import { Hosts } from '../../../adapters/http/hosts.ts';
import type { Config } from '../../../core/config/config.ts';
import { PlatformError } from '../../../kernel/errors.ts';

export class BrowserAddress {
  readonly #publicUrl: string | null;
  readonly #hosts: Hosts;

  constructor({ publicUrl, mcpHosts }: Config) {
    this.#publicUrl = publicUrl;
    this.#hosts = new Hosts(publicUrl, mcpHosts, null);
  }

  /** PUBLIC_URL, else the origin of the page, whose host must be one of the platform's; throws `409` for another one. */
  of({ headers: { origin, host } }: FastifyRequest): string {
    const publicUrl = this.#publicUrl;
    if (publicUrl !== null) {
      if (origin === undefined || origin === new URL(publicUrl).origin) return publicUrl;
      throw conflict(`Open the console at ${publicUrl}: authorization servers send you back there`);
    }
    const base = origin ?? `http://${host}`;
    if (URL.parse(base)?.origin === base && this.#hosts.isOrigin(base, host)) return base;
    throw conflict(
      'The address of this page is not known to be that of the platform: set PUBLIC_URL',
    );
  }
}

const conflict = (message: string) => new PlatformError('conflict', message);
