import { describe, expect, test } from 'vitest';
import { depthOf, markdownOf, readHtml, textOf } from './html.ts';

describe('HTML of any quality becomes a document', () => {
  test.each([
    ['', '', ''],
    ['just text', '', 'just text'],
    ['<p>one<p>two', '', '<p>one</p><p>two</p>'],
    ['<title>T</title><p>a', 'T', '<p>a</p>'],
    ['<!doctype html><title>T</title><body class=x><p>a', 'T', '<p>a</p>'],
    ['\uFEFF<html lang=de><head><title>a &amp; b</title></head><p>c</html>', 'a & b', '<p>c</p>'],
    ['<html><head><meta name=x content=y><body>z<svg><title>s</title></svg>', '', undefined],
    ['<<>><p', '', undefined],
  ])('%j', async (html, title, body) => {
    const document = await readHtml(html);

    expect(document.title).toBe(title);
    if (body !== undefined) expect(document.body.innerHTML).toBe(body);
  });

  test('its language is kept', async () => {
    const { documentElement } = await readHtml('<html lang="de-AT"><p>x');

    expect(documentElement.getAttribute('lang')).toBe('de-AT');
  });
});

test('the depth of a document is how far its elements nest', async () => {
  const deep = await readHtml(`${'<div>'.repeat(50)}x`);

  expect(depthOf(deep)).toBeGreaterThan(50);
  expect(depthOf(await readHtml('x'))).toBeLessThan(6);
});

describe('a page reads as text', () => {
  test.each([
    ['<h1>A</h1><p>b\n  c <b>d</b>e</p><p>f', 'A\n\nb c de\n\nf'],
    ['a<br>b', 'a\nb'],
    ['<p>x</p><ul><li>a</li> <li>b</li></ul>', 'x\n\na\nb'],
    ['<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>', 'a\tb\nc'],
    ['<pre>a\n  b</pre>', 'a\n  b'],
    [
      'a<script>x()</script><style>p{}</style><noscript>n</noscript><svg><text>s</text></svg>b',
      'ab',
    ],
    ['caf&eacute; &lt;3 &#x1F600;', 'café <3 😀'],
    ['<div><div><div>a</div></div></div><div>b</div>', 'a\nb'],
  ])('%j', async (html, text) => {
    expect(textOf(await readHtml(html))).toBe(text);
  });
});

describe('HTML becomes Markdown', () => {
  test.each([
    ['<h2>A</h2><p>b <em>c</em></p>', '## A\n\nb _c_'],
    ['<ul><li>a</li><li>b</li></ul>', '-   a\n-   b'],
    ['<pre><code>x = 1\n</code></pre>', '```\nx = 1\n```'],
    ['<a href="https://example.com/">t</a>', '[t](https://example.com/)'],
    ['a<script>x()</script><style>p{}</style>b', 'ab'],
    [
      '<table><thead><tr><th>a</th><th>b|c</th></tr></thead><tbody><tr><td>1</td><td></td></tr></tbody></table>',
      '| a | b\\|c |\n| --- | --- |\n| 1 |  |',
    ],
    ['<table><tr><td>1</td></tr><tr><td>2</td></tr></table>', '| 1 |\n| --- |\n| 2 |'],
  ])('%j', async (html, markdown) => {
    expect(await markdownOf(html)).toBe(markdown);
  });
});
