import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import { describeFailure } from './child/failure.ts';
import {
  addSecrets,
  Pieces,
  redacted,
  redactedJson,
  redactedStray,
  redactedValue,
} from './redaction.ts';

function runWith(...secrets: string[]) {
  const run: { secrets: readonly string[] | undefined } = { secrets: undefined };
  addSecrets(run, secrets);
  return run;
}

describe('redaction', () => {
  test('replaces a secret as it is, as JSON writes it, and as a url encodes it', () => {
    const run = runWith('a "b"/ü');

    expect(redacted(run, 'x a "b"/ü y')).toBe('x *** y');
    expect(redacted(run, JSON.stringify({ key: 'a "b"/ü' }))).toBe('{"key":"***"}');
    expect(redacted(run, `https://host/?key=${encodeURIComponent('a "b"/ü')}`)).toBe(
      'https://host/?key=***',
    );
  });

  test('replaces a secret of six digits or more that is written as a number', () => {
    const run = runWith('73915526');

    expect(redactedJson(run, '{"pin":73915526,"pins":[73915526,7391]}')).toBe(
      '{"pin":"***","pins":["***",7391]}',
    );
    expect(redacted(run, 'pin 73915526')).toBe('pin ***');
  });

  test.each([
    ['JSON in JSON', (secret: string) => JSON.stringify(JSON.stringify({ secret }))],
    ['the console', (secret: string) => inspect({ secret })],
    ['a form', (secret: string) => `${new URLSearchParams({ secret })}`],
  ])('replaces a secret as %s writes it', (_, written) => {
    const secret = `p"a\\s's w\u00f6rd!(1)`;

    const shown = redacted(runWith(secret), written(secret));

    expect(shown).toContain('***');
    expect(shown).not.toMatch(/s w|s\+w|rd/);
  });

  test('replaces the lines of a secret of several lines, which the console shows one by one', () => {
    const key =
      '-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nBKcwggSjAgEAAoIBAQ==\n-----END KEY-----';

    expect(redacted(runWith(key), inspect({ key }, { breakLength: 40 }))).not.toMatch(/MII|BKc/);
  });

  test('replaces a secret that comes in pieces, and holds nothing else back', () => {
    const { secrets = [] } = runWith('secret-1', '1-next');
    const read = (...texts: string[]) => {
      const pieces = new Pieces(() => secrets);
      return [...texts.map((piece) => pieces.take(piece)), pieces.rest()];
    };

    expect(read('the secr', 'et-', '1 is\n', 'over')).toEqual(['the ', '', '*** is\n', 'over', '']);
    expect(read('keys', 'ecret-1')).toEqual(['key', '***', '']);
    expect(read('ssss', 'x')).toEqual(['sss', 'sx', '']);
    expect(read('ends with s')).toEqual(['ends with ', 's']);
    expect(read('ends with secret-')).toEqual(['ends with ', '***']);
  });

  test('replaces a secret that holds another one wholly', () => {
    expect(redacted(runWith('pass', 'password-1'), 'password-1 and pass')).toBe('*** and ***');
  });

  test('reaches the texts and keys of a value, and leaves short numbers as they are', () => {
    const value = { 'is-1234': ['1234', 1234, { deep: 'a 1234' }, null, true] };

    expect(redactedValue(runWith('1234'), value)).toEqual({
      'is-***': ['***', 1234, { deep: 'a ***' }, null, true],
    });
    expect(redactedJson(runWith('1234'), '{"n":1234,"s":"1234"}')).toBe('{"n":1234,"s":"***"}');
  });

  test('leaves a run without secrets as it is', () => {
    const run = runWith();
    const json = '{"spaced" : 1}';

    expect(run.secrets).toBeUndefined();
    expect(redactedJson(run, json)).toBe(json);
  });

  test('keeps a secret out of an error that is cut in its middle', () => {
    const message = `${'x'.repeat(4_090)}a-long-secret`;

    expect(describeFailure(new Error(message), runWith('a-long-secret')).message).not.toContain(
      'a-l',
    );
  });

  test('knows the secrets of all runs where a text belongs to none', () => {
    runWith('secret-of-one-run');

    expect(redactedStray('late: secret-of-one-run')).toBe('late: ***');
  });
});
