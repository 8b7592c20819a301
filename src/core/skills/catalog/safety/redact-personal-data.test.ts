import { expect, test } from 'vitest';
import { trySkill } from '../../../../../test/support/try-skill.ts';
import redact from './redact-personal-data.ts';

const redacted = async (text: string, more: object = {}) => {
  const verdict = await trySkill(redact, { text, ...more });
  return verdict.action === 'replace' ? verdict.text : verdict.action;
};

test.each([
  ['ada@example.com', '[email]'],
  ['Mail <o.b-r+x@mail.example.co.uk>, please.', 'Mail <[email]>, please.'],
  ['jürgen@müller.example', '[email]'],
  ['Card 4111 1111 1111 1111, 12/30', 'Card [card], 12/30'],
  ['5500-0000-0000-0004', '[card]'],
  ['378282246310005', '[card]'],
  ['Order 17 4111 1111 1111 1111', 'Order 17 [card]'],
  ['DE89 3704 0044 0532 0130 00 is mine', '[iban] is mine'],
  ['gb82west12345698765432', '[iban]'],
  ['NO9386011117947.', '[iban].'],
  ['From 192.168.0.1:8080 to 10.0.0.1.', 'From [ip]:8080 to [ip].'],
  ['[2001:db8::ff00:42:8329] and fe80::1', '[[ip]] and [ip]'],
  ['+41 44 668 18 00', '[phone]'],
  ['Call (030) 901820-17 now', 'Call [phone] now'],
  ['0041446681800', '[phone]'],
  ['079 123 45 67', '[phone]'],
  ['(415) 555-2671 or 415-555-2671', '[phone] or [phone]'],
  ['4111\u00a01111\u202f1111\u20111111', '[card]'],
  ['DE89\u00a03704 0044 0532\u20070130 00', '[iban]'],
  ['+41\u00a044\u2011668\u201318\u200900', '[phone]'],
])('%j becomes %j', async (text, expected) => {
  expect(await redacted(text)).toBe(expected);
});

test.each([
  ['a card without its check digit', '4111 1111 1111 1112'],
  ['an IBAN without its check digits', 'DE88 3704 0044 0532 0130 00'],
  ['zeros', '0000000000000000'],
  ['dates and times', '2026-11-29 10:00:00, 29.11.2026, 01/02/2026'],
  ['versions', 'v1.2.3, 1.2.3.4.5 and 1.2.3'],
  ['an amount', 'CHF 1 234 567.00'],
  ['names with an @', '@ada and ada@localhost'],
  ['an id', '01990a5e-7c1b-7002-8f1e-0c5a7e9b2d13'],
  ['an octet too large', '300.1.1.1'],
  ['nothing', ''],
])('%s pass', async (_what, text) => {
  expect(await redacted(text)).toBe('pass');
});

const perLine = [
  'Contact',
  '+41 44 668 18 00',
  'DE89 3704 0044 0532 0130 00',
  '192.168.0.1',
  '4111 1111 1111 1111',
  'ada@example.com',
];
const contact = { text: perLine.join('\n'), quoted: 'as "ada@example.com"' };

test.each([
  ['JSON', JSON.stringify, JSON.parse],
  ['JSON within JSON', (value: object) => JSON.stringify(JSON.stringify(value)), parsedTwice],
])('%s stays what it is, and what begins a line in it is found', async (_what, form, parse) => {
  expect(parse((await redacted(form(contact))) as string)).toEqual({
    text: 'Contact\n[phone]\n[iban]\n[ip]\n[card]\n[email]',
    quoted: 'as "[email]"',
  });
});

function parsedTwice(text: string): unknown {
  return JSON.parse(JSON.parse(text) as string);
}

test('only the kinds that are given are looked for', async () => {
  const text = 'ada@example.com, 192.168.0.1';
  expect(await redacted(text, { kinds: ['ip'] })).toBe('ada@example.com, [ip]');
});

test('what is found may refuse the text, and the reason does not repeat it', async () => {
  const text = 'ada@example.com';
  expect(await trySkill(redact, { text, action: 'refuse' })).toEqual({
    action: 'refuse',
    reason: 'It has personal data: email.',
  });
});
