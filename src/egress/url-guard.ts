/**
 * Which urls may be asked for, judged without a look at the network. Promises nothing about the
 * addresses behind a name: those are judged when they are connected to (guarded-agent.ts). What is
 * judged is always the parsed url, because 0x7f.1, ①②⑦.0.0.1 and 127.0.0.1 are one host.
 */

import { isIP } from 'node:net';
import { isAllowedAddress, isListedAddress } from './address-guard.ts';
import type { AllowList } from './allow-list.ts';
import type { EgressCode } from './egress-error.ts';

const urlLengthMax = 2048;

/** What one kind of caller may ask for. */
export interface UrlRules {
  /** `['https:']` for webhooks, `['https:', 'http:']` for skills. */
  readonly schemes: readonly ('http:' | 'https:')[];
  readonly allowed: AllowList;
  /** A fragment is never sent, so where a url is stored it is a slip. */
  readonly fragment: 'ignored' | 'refused';
}

export type UrlVerdict =
  | { readonly ok: true; readonly url: URL }
  | { readonly ok: false; readonly code: EgressCode; readonly reason: string };

/** Names that mean this machine or its neighbours, in whole or as the end of a name. */
const localNames = ['localhost', 'local', 'internal'];

/** Ports from here on are for anybody. */
const firstFreePort = 1024;

/** Those of them where stores, brokers and control planes listen, and websites do not. */
const refusedPorts: ReadonlySet<number> = new Set([
  1433, 1434, 1521, 2049, 2181, 2375, 2376, 2377, 2379, 2380, 3306, 3389, 4369, 5432, 5433, 5671,
  5672, 5900, 5984, 5985, 5986, 6000, 6379, 6380, 6443, 6667, 7000, 7473, 7474, 7687, 8086, 8500,
  8529, 9042, 9092, 9160, 9200, 9300, 10250, 10255, 11211, 15672, 16379, 25672, 26257, 26379, 27017,
  27018, 27019, 28015, 33060, 50000, 61616,
]);

/**
 * Judges `text` as an absolute url. A verdict that is not ok gives the reason as the end of a
 * sentence that starts with "The url".
 */
export function checkUrl(text: string, rules: UrlRules): UrlVerdict {
  const invalid = (reason: string): UrlVerdict => ({ ok: false, code: 'invalid_url', reason });
  if (text.length > urlLengthMax) return invalid(`is longer than ${urlLengthMax} characters`);
  // The parser drops tabs and line ends and reads \ as /, so that a reader and it may disagree.
  if (hasMisleadingCharacters(text)) {
    return invalid('contains a space, a control character or a backslash');
  }
  // It also passes over further slashes, so that what reads as a path would be the host.
  if (!/^[a-z][a-z0-9+.-]*:\/\/[^/]/i.test(text) || !URL.canParse(text)) {
    return invalid('is not an absolute url');
  }
  const url = new URL(text);
  if (!rules.schemes.some((scheme) => scheme === url.protocol)) {
    return invalid(`must start with ${rules.schemes.map((scheme) => `${scheme}//`).join(' or ')}`);
  }
  if (url.username !== '' || url.password !== '') return invalid('must not contain credentials');
  if (rules.fragment === 'refused' && url.href.includes('#')) {
    return invalid('must not contain a fragment');
  }
  return checkHost(url, rules.allowed) ?? { ok: true, url };
}

/** The port that a url leads to, spelled out or by its scheme. */
function portOf(url: URL): number {
  if (url.port !== '') return Number(url.port);
  return url.protocol === 'https:' ? 443 : 80;
}

/** Whether a connection to this address and port may be made, as far as the port goes. */
export function isAllowedPort(port: number, address: string, allowed: AllowList): boolean {
  return isWebPort(port) || (port > 0 && isListedAddress(address, allowed));
}

/** Judges host and port; null when there is nothing against them. */
function checkHost(url: URL, allowed: AllowList): UrlVerdict | null {
  const host = hostOf(url);
  const port = portOf(url);
  const blockedPort: UrlVerdict = {
    ok: false,
    code: 'blocked_port',
    reason: `leads to port ${port}, which is not allowed`,
  };
  if (isIP(host) !== 0) {
    if (!isAllowedAddress(host, allowed)) {
      return {
        ok: false,
        code: 'blocked_address',
        reason: 'leads to an address that is not allowed',
      };
    }
    return isAllowedPort(port, host, allowed) ? null : blockedPort;
  }
  if (!isHostName(host)) return { ok: false, code: 'invalid_url', reason: 'has no valid host' };
  // With a list, only the addresses behind the name can tell; the connection asks them. Below 1024
  // there is nothing to tell: no webhook or website is meant to be there.
  if (allowed.length > 0) return isWebPort(port) || port >= firstFreePort ? null : blockedPort;
  if (isLocalName(host)) {
    return { ok: false, code: 'blocked_address', reason: 'leads to a local name' };
  }
  return isWebPort(port) ? null : blockedPort;
}

/** The host as a resolver sees it: no brackets around IPv6, no dot at the end. */
function hostOf(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '');
}

/** DNS limits, so that a name that cannot exist is told apart from one that does not. */
function isHostName(host: string): boolean {
  return (
    host.length <= 253 && host.split('.').every((label) => label.length >= 1 && label.length <= 63)
  );
}

function isLocalName(host: string): boolean {
  return localNames.some((name) => host === name || host.endsWith(`.${name}`));
}

function isWebPort(port: number): boolean {
  return port === 443 || port === 80 || (port >= firstFreePort && !refusedPorts.has(port));
}

function hasMisleadingCharacters(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  return /[\u0000-\u0020\u007f-\u009f\\]|\s/u.test(text);
}
