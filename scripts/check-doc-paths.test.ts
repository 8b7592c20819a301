import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { checkCitations, checkDocument, unlistedPages } from './check-doc-paths.ts';

const root = mkdtempSync(join(tmpdir(), 'skillwright-docs-'));
mkdirSync(join(root, 'src', 'jobs'), { recursive: true });
writeFileSync(join(root, 'src', 'jobs', 'accept.ts'), '');
mkdirSync(join(root, 'docs'));
writeFileSync(
  join(root, 'docs', 'other.md'),
  '# A first heading\n\n## What `accept` does, exactly\n',
);
afterAll(() => rmSync(root, { recursive: true, force: true }));

function faultsOf(text: string): string[] {
  writeFileSync(join(root, 'docs', 'page.md'), text);
  return checkDocument(root, 'docs/page.md', new Set(['verify'])).map((fault) => fault.text);
}

test.each([
  'See `src/jobs/accept.ts`, `jobs/accept.ts`, `src/jobs/` and `other.md`.',
  'By name alone, globs, placeholders: `accept.ts`, `src/**/*.ts`, `src/<slice>/accept.ts`, `x.store.ts`.',
  'Not ours: `text/word-count`, `application/json`, `/api/jobs`, `a + b`, `./data`, `v1.0`.',
  'Run `npm run verify`.\n\n```sh\nnpm run verify\nnode src/jobs/accept.ts\n```\n',
  '[a](other.md), [b](other.md#what-accept-does-exactly), [c](https://example.com/nowhere).',
])('right: %s', (text) => {
  expect(faultsOf(text)).toEqual([]);
});

test.each([
  ['`src/jobs/gone.ts`', 'src/jobs/gone.ts: no such path'],
  ['`gone.ts`', 'gone.ts: no such path'],
  ['`jobs/gone.ts`', 'jobs/gone.ts: no such path'],
  ['`src/gone/`', 'src/gone/: no such path'],
  ['`src/**/*.sql`', 'src/**/*.sql: no such path'],
  ['```sh\nnode src/gone.ts\n```', 'src/gone.ts: no such path'],
  ['`npm run gone`', 'npm run gone: no such script'],
  ['[a](gone.md)', 'gone.md: the link leads nowhere'],
  ['[a](other.md#gone)', 'other.md#gone: no such heading'],
])('wrong: %s', (text, fault) => {
  expect(faultsOf(text)).toEqual([fault]);
});

test('a comment of a source file cites a page that exists', () => {
  writeFileSync(
    join(root, 'src', 'jobs', 'cites.ts'),
    '/** See docs/other.md. */\n/** See docs/decisions/gone.md and https://example.com/docs/far.md. */\n',
  );
  expect(checkCitations(root, 'src/jobs/cites.ts')).toEqual([
    { line: 2, text: 'docs/decisions/gone.md: no such page' },
  ]);
});

test('a page that the menu of the site does not name is a fault', () => {
  const documents = ['README.md', 'docs/README.md', 'docs/skills.md', 'docs/decisions/README.md'];

  expect(unlistedPages([...documents, 'docs/lost.md'])).toEqual(['docs/lost.md']);
});
