import { type DestinationStream, type Logger, pino } from 'pino';

export type { Logger } from 'pino';

/** Header and body fields that never reach a log line. */
const secretPaths = ['authorization', 'plaintext_key', 'secret', 'signing_secret', 'token'].flatMap(
  (name) => [name, `*.${name}`],
);

/** JSON lines on standard output (or `destination`), one object each, secrets censored. */
export function createLogger(level: string, destination?: DestinationStream): Logger {
  return pino(
    { level, base: { pid: process.pid }, redact: { paths: secretPaths, censor: '[secret]' } },
    destination ?? pino.destination({ dest: 1, sync: true }),
  );
}
