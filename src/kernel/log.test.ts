import { expect, test } from 'vitest';
import { createLogger } from './log.ts';

function lines(level: string) {
  const written: Record<string, unknown>[] = [];
  const log = createLogger(level, { write: (line) => void written.push(JSON.parse(line)) });
  return { log, written };
}

test('a log line is one JSON object with its message and fields', () => {
  const { log, written } = lines('info');

  log.info({ job_id: 'j' }, 'a run failed\nwith a line break');

  expect(written).toEqual([
    expect.objectContaining({ level: 30, job_id: 'j', msg: 'a run failed\nwith a line break' }),
  ]);
});

test.each(['authorization', 'plaintext_key', 'secret', 'signing_secret', 'token'])(
  'a log line never shows the %s',
  (name) => {
    const { log, written } = lines('info');

    log.info({ [name]: 'hidden-1', headers: { [name]: 'hidden-2' } }, 'something');

    expect(JSON.stringify(written)).not.toContain('hidden');
    expect(written[0]?.[name]).toBe('[secret]');
  },
);

test('lines below the level are not written', () => {
  const { log, written } = lines('warn');

  log.info('not this');
  log.warn('this');

  expect(written.map(({ msg }) => msg)).toEqual(['this']);
});
