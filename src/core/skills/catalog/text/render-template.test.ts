import { describe, expect, test } from 'vitest';
import { decided } from '../../../../../test/support/short-sandbox.ts';
import { trySkill } from '../../../../../test/support/try-skill.ts';
import renderTemplate from './render-template.ts';

const runSkill = (template: string, data = {}, more = {}) =>
  trySkill(renderTemplate, { template, data, ...more });

const render = async (template: string, data: Record<string, unknown> = {}, more = {}) =>
  (await runSkill(template, data, more)).text;

test('conditions, loops and filters work', async () => {
  const template = '{% if paid %}Thanks, {{ name | capitalize }}!{% else %}Please pay.{% endif %}';

  expect(await render(template, { paid: true, name: 'ada' })).toBe('Thanks, Ada!');
  expect(await render(template)).toBe('Please pay.');
  expect(await render('{{ 1700000000 | date: "%Y-%m-%d %H:%M" }}')).toBe('2023-11-14 22:13');
});

test.each([
  ['{{ "abc" | sha256 }}', 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'],
  [
    '{{ "abc" | hmac_sha256: "k" }}',
    '342e519ce0ad6c03a36b98eeb3f1d130db4813b9df4d1160eda488d712dc78ee',
  ],
  ['{{ "a\u00e9" | base64_encode }}', 'YcOp'],
  ['{{ "YcOp" | base64_decode }}', 'a\u00e9'],
  ['{{ "a b&c" | url_encode }}', 'a+b%26c'],
  ['{{ 1234.5 | round | json }}', '1235'],
])('%s gives %s', async (template, text) => {
  expect(await render(template)).toBe(text);
});

test('a name that is not known is empty, or an error when that is wished', async () => {
  expect(await render('[{{ missing }}]')).toBe('[]');
  await expect(runSkill('[{{ missing }}]', {}, { strict: true })).rejects.toMatchObject({
    message: expect.stringContaining('missing'),
    retryable: false,
  });
  await expect(render('{{ 1 | made_up }}', {}, { strict: true })).rejects.toThrow('made_up');
});

test('values are escaped for HTML when that is wished', async () => {
  const data = { name: '<b>Ada</b>' };

  expect(await render('{{ name }}', data)).toBe('<b>Ada</b>');
  expect(await render('{{ name }}', data, { escape_html: true })).toBe('&lt;b&gt;Ada&lt;/b&gt;');
  expect(await render('{{ name | raw }}', data, { escape_html: true })).toBe('<b>Ada</b>');
});

describe('a template sees its data and nothing else', () => {
  test.each([
    "{% include '/etc/passwd' %}",
    "{% render '../../package.json' %}",
    "{% layout 'file:///etc/passwd' %}",
    '{% include name %}',
  ])('%s reads no file', async (template) => {
    await expect(runSkill(template, { name: '/etc/passwd' })).rejects.toMatchObject({
      retryable: false,
    });
  });

  test.each([
    '{{ data.constructor }}',
    '{{ data.constructor.constructor }}',
    '{{ "x" | map: "constructor" | first }}',
    '{{ "".constructor.constructor }}',
    '{{ data.__proto__ }}',
    '{{ data.toString }}',
    '{{ process.env }}',
    '{{ globalThis }}',
  ])('%s is empty', async (template) => {
    expect(await render(template, { data: { a: 1 } })).toBe('');
  });
});

describe('a template that asks for too much is stopped', () => {
  test.each([
    [
      'loops without end',
      '{% for a in (1..9999) %}{% for b in (1..99999) %}x{% endfor %}{% endfor %}',
    ],
    ['a huge range', '{% for i in (1..999999999) %}x{% endfor %}'],
    [
      'a text that doubles',
      '{% assign t = "xxxxxxxxxxxxxxxx" %}{% for i in (1..60) %}{% assign t = t | append: t %}{% endfor %}{{ t }}',
    ],
    ['long output', `{% for i in (1..6000) %}${'x'.repeat(100)}{% endfor %}`],
  ])('%s', { timeout: 60_000 }, async (_what, template) => {
    await expect(decided(() => runSkill(template))).rejects.toMatchObject({
      name: 'SkillError',
      retryable: false,
    });
  });
});

test.each(['{% if %}', '{% for %}', '{{ a | }', '{% endif %}', '{% made_up %}'])(
  '%s is an error that names the line',
  async (template) => {
    await expect(render(template)).rejects.toThrow(/line:\s?1/);
  },
);
