/** Why a store cannot be reached, as a sentence that never shows the address with its password. */
import { type Finding, fault } from './finding.ts';

type Reason = readonly [message: string, remedy: string];

/** What the driver of PostgreSQL said. */
export function postgresFault(url: string, error: unknown): Finding {
  const { host, pathname, username } = new URL(url);
  const code = codeOf(error);
  const at = `PostgreSQL at ${host}`;
  const user = decodeURIComponent(username) || 'the user of this process';
  const database = decodeURIComponent(pathname.slice(1)) || user;
  const reasons: Readonly<Record<string, Reason>> = {
    '28P01': [
      `${at} refuses the user ${user} or its password`,
      'correct them in DATABASE_URL, or set the password with ALTER ROLE',
    ],
    '28000': [
      `${at} does not let ${user} in (${textOf(error)})`,
      'correct the user in DATABASE_URL, or allow it in pg_hba.conf',
    ],
    '3D000': [
      `${at} has no database ${database}`,
      `create it (createdb ${database}), or correct the name in DATABASE_URL`,
    ],
    '42501': [
      `${at} lets ${user} in, but not at its data (${textOf(error)})`,
      `make ${user} the owner of the database ${database}`,
    ],
    '53300': [`${at} has no connection left`, 'raise max_connections, or lower DATABASE_POOL_MAX'],
    '57P03': [`${at} is starting or stopping`, 'wait until it is ready'],
    '55P03': [
      `A table of ${at} is locked`,
      'wait until the migration or the maintenance that holds it ends',
    ],
  };
  const wantsPassword = /password must be a string/.test(textOf(error));
  const [message, remedy] = wantsPassword
    ? [`${at} asks for a password, and DATABASE_URL has none`, 'add it to DATABASE_URL']
    : (reasons[code] ?? networkReason({ name: 'PostgreSQL', setting: 'DATABASE_URL', url, error }));
  return fault('database', message, remedy);
}

/** What the driver of Redis said. */
export function redisFault(url: string, error: unknown): Finding {
  const { host, pathname } = new URL(url);
  const text = textOf(error);
  const reasons: readonly (readonly [RegExp, ...Reason])[] = [
    [
      /^WRONGPASS|invalid password/,
      `Redis at ${host} refuses the user or the password`,
      'correct them in REDIS_URL',
    ],
    [/^NOAUTH/, `Redis at ${host} asks for a password`, 'add it to REDIS_URL'],
    [
      /DB index/,
      `Redis at ${host} has no database ${pathname.slice(1)}`,
      'correct the number in REDIS_URL',
    ],
    [/^NOPERM/, `Redis at ${host} lacks permissions (${text})`, 'allow them to the user (ACL)'],
    [
      /^DENIED/,
      `Redis at ${host} is in protected mode`,
      'set a password in it, and add it to REDIS_URL',
    ],
    [/^LOADING/, `Redis at ${host} is loading its data`, 'wait until it is ready'],
  ];
  const [, ...known] = reasons.find(([pattern]) => pattern.test(text)) ?? [];
  const [message = '', remedy = ''] =
    known.length > 0 ? known : networkReason({ name: 'Redis', setting: 'REDIS_URL', url, error });
  return fault('redis', message, remedy);
}

interface Failed {
  readonly name: string;
  readonly setting: string;
  readonly url: string;
  readonly error: unknown;
}

function networkReason({ name, setting, url, error }: Failed): Reason {
  const { host, hostname } = new URL(url);
  switch (codeOf(error)) {
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return [
        `The host ${hostname} of ${setting} is not known`,
        'correct it, or mend the resolution of names',
      ];
    case 'ECONNREFUSED':
      return [
        `Nothing listens at ${host}`,
        `start ${name} there, or correct host and port in ${setting}`,
      ];
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
    case 'ETIMEDOUT':
      return [
        `${name} at ${host} does not answer`,
        `correct host and port in ${setting}, or let a firewall between pass it`,
      ];
    default:
      return [
        `${name} at ${host} does not answer as expected (${textOf(error)})`,
        `start it, or correct ${setting}`,
      ];
  }
}

/** A timeout of a driver has no code. */
function codeOf(error: unknown): string {
  const { code } = error as { code?: unknown };
  if (typeof code === 'string') return code;
  return /time(d )?out/i.test(textOf(error)) ? 'ETIMEDOUT' : '';
}

/** Node tells of several addresses that were tried in an error without a message. */
function textOf(error: unknown): string {
  const { message, code } = error as { message?: string; code?: string };
  return message || (code ?? 'no reason given');
}
