/**
 * A long text takes about as much time as short ones that have as many characters together, whatever it is made of.
 * Measured is processor time of what a skill computes in its executor or, without the process around it, in its sandbox;
 * what cannot be linear (programs of strangers, unlike texts, a page's main text) is stopped by its deadline, and the
 * tests of these skills say so.
 */
import { describe, expect, test, vi } from 'vitest';
import { fakeModel } from '../../../../test/support/fake-model.ts';
import { growthOf, linearGrowthMax } from '../../../../test/support/growth.ts';
import { contextOf } from '../../../../test/support/try-skill.ts';
import { archiveOf } from '../../../../test/support/zip-archive.ts';
import type { Egress } from '../../../adapters/egress/guarded-fetch.ts';
import { evaluate } from '../../../adapters/sandbox/jsonata.ts';
import { dataKinds, findPersonalData } from './_support/personal-data.ts';
import { render } from './_support/rendering.ts';
import { validateData } from './_support/schema-validation.ts';
import { findListed } from './_support/word-lists.ts';
import handleEvent from './agent/handle-event.ts';
import runTask from './agent/run-task.ts';
import { convert } from './data/convert.ts';
import { parse } from './data/parse-csv.ts';
import { extract } from './documents/extract-text.ts';
import { compare } from './text/diff.ts';
import summarize from './text/summarize.ts';
import translate from './text/translate.ts';
import wordCount from './text/word-count.ts';
import echo from './util/echo.ts';
import { readPage } from './web/fetch-page.ts';
import httpRequest from './web/http-request.ts';

const served: { body: string; type: string } = { body: '', type: '' };
const web: Pick<Egress, 'request' | 'close'> = {
  request: async (url) => ({
    status: 200,
    headers: { 'content-type': served.type },
    body: Buffer.from(served.body),
    truncated: false,
    url,
  }),
  close: async () => undefined,
};
vi.mock('../../../adapters/egress/skills-egress.ts', () => ({ skillsEgress: () => web }));

const context = () => contextOf({ generate: fakeModel(() => 'An answer.').generate });

type Compute = (text: string) => unknown;

const csv = (text: string) => parse({ text });
const page = (html: string) =>
  readPage({ html, url: 'https://example.com/', maxLinks: 100, charactersMax: 1_000 });
const document = (text: string | Buffer, contentType = '') =>
  extract({
    base64: Buffer.from(text).toString('base64'),
    contentType,
    hint: null,
    charactersMax: 1_000,
  });

const personal = (text: string) => findPersonalData(text, dataKinds);
const listed = (text: string) => findListed(text, ['a a a a a a a a b', 'a a*b', 'aa*']);

/** A name, what is computed, and a text of which there is ever more. */
const cases: [skill: string, what: string, compute: Compute, text: (n: number) => string][] = [
  ['safety/redact-personal-data', 'letters', personal, (n) => 'a'.repeat(n)],
  ['safety/redact-personal-data', 'digits', personal, (n) => '4'.repeat(n)],
  ['safety/redact-personal-data', 'groups of digits', personal, (n) => '4 0-'.repeat(n / 4)],
  ['safety/redact-personal-data', 'addresses', personal, (n) => 'a@a.'.repeat(n / 4)],
  ['safety/redact-personal-data', 'parts of IBANs', personal, (n) => 'DE11 '.repeat(n / 5)],
  ['safety/redact-personal-data', 'parts of addresses', personal, (n) => '1:.'.repeat(n / 3)],
  ['safety/redact-personal-data', 'parts of numbers', personal, (n) => '+(0 '.repeat(n / 4)],
  ['safety/moderate', 'words of a phrase', listed, (n) => 'a '.repeat(n / 2)],
  ['safety/moderate', 'one word', listed, (n) => 'b'.repeat(n)],
  ['data/parse-csv', 'equal column names', csv, (n) => 'a,'.repeat(n / 2)],
  [
    'data/parse-csv',
    'column names that are taken',
    csv,
    (n) => numbered(n, 'a_', ',').concat('a,'.repeat(n / 8)),
  ],
  ['data/parse-csv', 'rows', csv, (n) => 'a,b\n'.repeat(n / 4)],
  ['data/parse-csv', 'quotes', csv, (n) => `"${'""'.repeat(n / 2)}"`],
  ['data/parse-csv', 'a quote without an end', csv, (n) => `"${'a,\n'.repeat(n / 3)}`],
  [
    'data/parse-csv',
    'one cell',
    (text) => parse({ text, infer_types: true }),
    (n) => `a\n${'1'.repeat(n)}`,
  ],
  [
    'data/convert',
    'equal column names',
    (text) => convert({ text, from: 'csv', to: 'json' }),
    (n) => `${'a,'.repeat(n / 2)}\n`,
  ],
  [
    'data/convert',
    'objects without a name in common',
    (text) => convert({ text, from: 'json', to: 'csv' }),
    (n) => `[${numbered(n, '{"a', '":1},')}{}]`,
  ],
  [
    'data/convert',
    'YAML keys',
    (text) => convert({ text, from: 'yaml', to: 'json' }),
    (n) => numbered(n / 4, 'a', ': 1\n'),
  ],
  [
    'data/convert',
    'YAML that nests',
    (text) => convert({ text, from: 'yaml', to: 'json' }),
    (n) => '['.repeat(n / 4),
  ],
  [
    'data/query-json',
    'items',
    (text) =>
      evaluate({ expression: '$sum(n)', context: text, levels: 1_000, valueBytesMax: 1_000 }),
    (n) => `[${'{"n":1},'.repeat(n / 8)}{}]`,
  ],
  [
    'data/validate-json',
    'items',
    (text) =>
      validateData({
        schema: { items: { type: 'integer' } },
        data: JSON.parse(text),
        errorsMax: 50,
      }),
    (n) => `["a"${',"a"'.repeat(n / 4)}]`,
  ],
  ['documents/extract-text', 'plain text', document, (n) => 'a '.repeat(n / 2)],
  [
    'documents/extract-text',
    'HTML',
    (text) => document(text, 'text/html'),
    (n) => '<p>a</p>'.repeat(n / 8),
  ],
  [
    'documents/extract-text',
    'doctypes',
    (text) => document(text, 'text/html'),
    (n) => '<!doctype'.repeat(n / 9),
  ],
  [
    'documents/extract-text',
    'white space',
    (text) => document(text, 'text/html'),
    (n) => `<pre>a${'\u00a0 '.repeat(n / 3)}a`,
  ],
  [
    'documents/extract-text',
    'a declaration without an end',
    (text) => document(text, 'text/html'),
    (n) => '<?xml  encoding'.repeat(n / 15),
  ],
  [
    'documents/extract-text',
    'files of an archive',
    (text) =>
      document(archiveOf(text.split(' ').map((name) => ({ name: `${name}.xml`, content: '' })))),
    (n) => numbered(n / 32, '', ' '),
  ],
  [
    'text/diff',
    'equal texts but for their ends',
    (text) => compare({ before: text, after: `${text}b\n` }),
    (n) => numbered(n, '', '\n'),
  ],
  [
    'text/summarize',
    'code blocks',
    (text) => summarize.run({ text }, context()),
    (n) => '```\n'.repeat(n / 4),
  ],
  [
    'text/summarize',
    'tags',
    (text) => summarize.run({ text }, context()),
    (n) => '<text-2 '.repeat(n / 8),
  ],
  [
    'text/translate',
    'one word',
    (text) => translate.run({ text, to: 'German' }, context()),
    (n) => 'a'.repeat(n),
  ],
  [
    'text/translate',
    'blank lines',
    (text) => translate.run({ text, to: 'German' }, context()),
    (n) => 'a\n \n'.repeat(n / 4),
  ],
  [
    'text/render-template',
    'values',
    (text) => render({ template: text, data: {}, strict: false, escapeHtml: false }),
    (n) => '{{ a }}'.repeat(n / 14),
  ],
  [
    'text/word-count',
    'one word',
    (text) => wordCount.run({ text }, context()),
    (n) => 'a'.repeat(n),
  ],
  [
    'text/word-count',
    'accents',
    (text) => wordCount.run({ text }, context()),
    (n) => '\u0301'.repeat(n),
  ],
  [
    'text/word-count',
    'words without spaces',
    (text) => wordCount.run({ text }, context()),
    (n) => '中'.repeat(n / 2),
  ],
  [
    'text/word-count',
    'line ends',
    (text) => wordCount.run({ text }, context()),
    (n) => '\r\n'.repeat(n / 2),
  ],
  ['util/echo', 'text', (text) => echo.run({ text }, context()), (n) => 'a'.repeat(n)],
  ['agent/run-task', 'text', (task) => runTask.run({ task }, context()), (n) => 'a'.repeat(n)],
  [
    'agent/handle-event',
    'tags',
    (text) => handleEvent.run({ text }, context()),
    (n) => '<event-'.repeat(n / 7),
  ],
  ['web/fetch-page', 'paragraphs', page, (n) => '<p>some text, and more</p>'.repeat(n / 128)],
  ['web/fetch-page', 'links', page, (n) => numbered(n / 16, '<a href="/', '">a</a>')],
  ['web/fetch-page', 'bodies', page, (n) => '<body>a'.repeat(n / 128)],
  ['web/fetch-page', 'titles', page, (n) => '<title>a</title>'.repeat(n / 64)],
  [
    'web/http-request',
    'JSON',
    (text) => request(text, 'application/json'),
    (n) => `[${'{},'.repeat(n / 3)}1]`,
  ],
  ['web/http-request', 'other text', (text) => request(text, ''), (n) => 'a'.repeat(n)],
  [
    'web/http-request',
    'a charset',
    (text) => request(text, `text/html; ${'charset  '.repeat(500)}`),
    (n) => '<meta charset  '.repeat(n / 15),
  ],
];

describe.each(cases)('%s of more and more %s', (_skill, _what, compute, text) => {
  test('takes time in proportion', { timeout: 60_000 }, async () => {
    expect(await growthOf(text, compute)).toBeLessThan(linearGrowthMax);
  });
});

function request(body: string, type: string) {
  Object.assign(served, { body, type });
  return httpRequest.run({ url: 'https://example.com/' }, context());
}

/** About `length` characters of numbers between two texts. */
function numbered(length: number, before: string, after: string): string {
  const each = before.length + after.length + 5;
  return Array.from({ length: Math.ceil(length / each) }, (_, i) => before + i + after).join('');
}
