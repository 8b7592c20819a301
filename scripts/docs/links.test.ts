import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { faultsOfSite } from './links.ts';

const menu =
  '<a href="/guide/">Home</a><a href="/guide/one">One</a><a href="/guide/more/">More</a>';

/** The faults of a site with these files beside three good pages. */
function faultsWith(files: Readonly<Record<string, string>>): string[] {
  const folder = mkdtempSync(join(tmpdir(), 'skillwright-site-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const all = {
    'index.html': menu,
    'one.html': '<h2 id="first">First</h2><script src="/guide/assets/a.js"></script>',
    'more/index.html': '<a href="../one#first">One</a><a href="/docs/">API</a>',
    'assets/a.js': '',
    ...files,
  };
  for (const [name, text] of Object.entries(all)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  return faultsOfSite(folder, '/guide/', ['/docs/']);
}

test('a site whose links lead to pages, headings and files has no faults', () => {
  expect(faultsWith({})).toEqual([]);
});

test.each([
  ['a page that is not there', '<a href="/guide/two">', '/guide/two'],
  ['a heading that is not there', '<a href="/guide/one#second">', '/guide/one#second'],
  ['a heading of its own that is not there', '<a href="#none">', '#none'],
  ['a page outside of the site', '<a href="/elsewhere">', '/elsewhere'],
  ['a file that is not there', '<img alt="" src="/guide/b.png">', '/guide/b.png'],
  ['a script of another host', '<script src="https://x.test/a.js">', 'https://x.test/a.js'],
  ['an inline script', '<script>run()</script>', 'has an inline script'],
])('%s is a fault', (_title, text, fault) => {
  expect(faultsWith({ 'one.html': `<h2 id="first">${text}` })).toEqual([`one.html: ${fault}`]);
});

test('a link to another host is none', () => {
  expect(faultsWith({ '404.html': '<a href="https://example.com/x">' })).toEqual([]);
});

test('a page that the menu does not name is a fault, and so is a style of another host', () => {
  const files = { 'lost.html': '', 'assets/a.css': "@import url('https://x.test/f.css');" };

  expect(faultsWith(files)).toEqual([
    'lost.html: not in the menu',
    'assets/a.css: loads from elsewhere',
  ]);
});
