import { createHmac } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { describe, expect, test } from 'vitest';
import {
  bodySignature,
  isBodySignature,
  isStandardSignature,
  secretFault,
  standardSignature,
} from './webhook-signature.ts';

const generated = `whsec_${Buffer.from('0123456789abcdef0123456789abcdef').toString('base64')}`;
const secrets = [
  ['generated', generated],
  ['plain', 'a-secret-of-my-own'],
  ['not ASCII', 'größer als 16 Zeichen 🔑'],
  ['with line ends and quotes', 'a"b\'c\r\nd\te and more'],
] as const;
const bodies = [
  ['ASCII', '{"a":1}'],
  ['Unicode', '{"text":"grüße 🏔️ \u2028 日本"}'],
  ['escaped slashes', '{"url":"https:\\/\\/example.com\\/a"}'],
  ['long', JSON.stringify('x'.repeat(200_000))],
  ['empty', ''],
] as const;
const cases = secrets.flatMap(([kind, secret]) =>
  bodies.map(([content, body]) => ({ kind, secret, content, body })),
);

describe('the signature of the body', () => {
  test('is known for a known secret and body', () => {
    expect(bodySignature('key', 'The quick brown fox jumps over the lazy dog')).toBe(
      'f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8',
    );
  });

  test.each(cases)('is hex HMAC-SHA256 with the secret as shown ($kind, $content)', (one) => {
    const expected = createHmac('sha256', Buffer.from(one.secret, 'utf8'))
      .update(Buffer.from(one.body, 'utf8'))
      .digest('hex');

    expect(bodySignature(one.secret, one.body)).toBe(expected);
    expect(bodySignature(one.secret, Buffer.from(one.body))).toBe(expected);
    expect(isBodySignature(expected, one.secret, one.body)).toBe(true);
    expect(isBodySignature(expected.toUpperCase(), one.secret, one.body)).toBe(true);
  });

  test('is keyed with all of a generated secret, its prefix included', () => {
    const withoutPrefix = bodySignature(generated.slice('whsec_'.length), 'x');

    expect(bodySignature(generated, 'x')).not.toBe(withoutPrefix);
  });

  const right = bodySignature('secret', 'body');
  test.each([
    ['of another body', bodySignature('secret', 'body ')],
    ['with another secret', bodySignature('Secret', 'body')],
    ['cut short', right.slice(0, -1)],
    ['with something behind it', `${right}0`],
    ['empty', ''],
    ['not hex', 'ü'.repeat(32)],
    ['with a prefix', `sha256=${right}`],
  ])('is refused when it is %s', (_how, given) => {
    expect(isBodySignature(given, 'secret', 'body')).toBe(false);
  });
});

describe('the signature of Standard Webhooks', () => {
  const now = () => Math.floor(Date.now() / 1000);

  test('is known for a known message', () => {
    // The example of the Standard Webhooks specification's libraries.
    const signature = standardSignature('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', {
      id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      timestamp: 1614265330,
      body: '{"test": 2432232314}',
    });

    expect(signature).toBe('v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=');
  });

  test.each(cases)('is accepted by the reference library ($kind, $content)', (one) => {
    const isGenerated = one.secret.startsWith('whsec_');
    const verifier = isGenerated
      ? new Webhook(one.secret)
      : new Webhook(Buffer.from(one.secret), { format: 'raw' });
    const message = { id: 'a-delivery', timestamp: now(), body: one.body };
    const headers = {
      'webhook-id': message.id,
      'webhook-timestamp': String(message.timestamp),
      'webhook-signature': standardSignature(one.secret, message),
    };

    verifier.verify(one.body, headers, { jsonParse: false });
    expect(() => verifier.verify(`${one.body} `, headers)).toThrow('No matching signature');
  });

  test.each(cases)('of the reference library is accepted ($kind, $content)', (one) => {
    const isGenerated = one.secret.startsWith('whsec_');
    const signer = isGenerated
      ? new Webhook(one.secret)
      : new Webhook(Buffer.from(one.secret), { format: 'raw' });
    const message = { id: 'msg', timestamp: 1_800_000_000, body: Buffer.from(one.body) };
    const given = signer.sign(message.id, new Date(message.timestamp * 1000), one.body);

    expect(isStandardSignature(given, one.secret, message, message.timestamp * 1000)).toBe(true);
  });

  const message = { id: 'msg', timestamp: 1_800_000_000, body: 'body' };
  const right = standardSignature(generated, message);
  const atMs = message.timestamp * 1000;

  test('may be one of several, as while a secret is rotated', () => {
    const other = standardSignature('the secret before it', message);

    expect(isStandardSignature(`${other} v1a,abc ${right}`, generated, message, atMs)).toBe(true);
  });

  test.each([
    ['another id', right, { ...message, id: 'other' }],
    ['another body', right, { ...message, body: 'other' }],
    ['another time', right, { ...message, timestamp: message.timestamp + 1 }],
    ['another version', right.replace('v1,', 'v2,'), message],
    ['no version', right.slice('v1,'.length), message],
    ['nothing', '', message],
  ])('is refused for %s', (_what, given, about) => {
    expect(isStandardSignature(given, generated, about, atMs)).toBe(false);
  });

  test.each([
    [0, true],
    [300, true],
    [-300, true],
    [300.001, false],
    [-300.001, false],
    [86_400, false],
    [Number.NaN, false],
  ])('of a message %d s away is accepted: %s', (seconds, isAccepted) => {
    const nowMs = atMs + seconds * 1000;

    expect(isStandardSignature(right, generated, message, nowMs)).toBe(isAccepted);
  });

  test('is refused when the time of the message is no number', () => {
    const odd = { ...message, timestamp: Number.NaN };

    expect(isStandardSignature(standardSignature(generated, odd), generated, odd, atMs)).toBe(
      false,
    );
  });
});

describe("a secret of one's own", () => {
  test.each([
    generated,
    `whsec_${Buffer.from('a').toString('base64')}`,
    generated.replace(/=+$/, ''),
    'anything without the prefix',
    'Whsec_ is another prefix',
    '🔑'.repeat(8),
  ])('may be %j', (secret) => {
    expect(secretFault(secret)).toBeNull();
  });

  // The decoder would pass over what it does not know, down to a key of no bytes at all.
  test.each([
    'whsec_',
    'whsec_====',
    'whsec_!!!!!!!!!!!!!!!!',
    'whsec_with spaces in it',
    'whsec_ü',
  ])('may not be %j, which has no key behind its prefix', (secret) => {
    expect(secretFault(secret)).toMatch(/base64/);
  });
});
