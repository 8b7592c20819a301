import type { RequestListener } from 'node:http';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { type Receiver, receiveHttp } from '../../../../../test/fixtures/receiver/receiver.ts';
import { trySkill } from '../../../../../test/support/try-skill.ts';
import fetchPage from './fetch-page.ts';

const receivers: Receiver[] = [];

beforeEach(() => {
  vi.stubEnv('SKILLS_ALLOW_CIDRS', '127.0.0.1/32');
});
afterEach(async () => {
  vi.unstubAllEnvs();
  for (const receiver of receivers.splice(0)) await receiver.close();
});

async function served(handler: RequestListener): Promise<string> {
  const receiver = await receiveHttp(handler);
  receivers.push(receiver);
  return receiver.origin;
}

const page =
  (body: string | Buffer, type = 'text/html; charset=utf-8', status = 200): RequestListener =>
  (_request, response) =>
    response.writeHead(status, type === '' ? {} : { 'content-type': type }).end(body);

const prose = 'The engine weaves algebraic patterns, just as the loom weaves flowers. '.repeat(10);
const article = `<!doctype html>
<html lang="en-GB">
<head>
  <title>On Engines | The Loom</title>
  <meta name="author" content="Ada Lovelace">
  <meta name="description" content="Notes on the engine.">
  <meta property="og:site_name" content="The Loom">
</head>
<body>
  <nav><a href="/">Home</a> <a href="/about?x=1#top">About   us</a> <a href="/">Home again</a></nav>
  <article>
    <h1>On Engines</h1>
    <p>${prose} See <a href="notes/g">note G</a>.</p>
    <p>${prose}</p>
    <ul><li>first</li><li>second</li></ul>
    <pre><code>for n in range(7):
    bernoulli(n)</code></pre>
    <img src="figure.png" alt="A figure"><img src="data:image/png;base64,AAAA" alt="inline">
    <a href="javascript:alert(1)">click</a> <a href="mailto:ada@example.com">mail</a>
    <script>document.write('scripted')</script>
  </article>
  <footer>Imprint</footer>
</body>
</html>`;

describe('an article', () => {
  test('gives its title, author, summary and text as Markdown', async () => {
    const url = `${await served(page(article))}/essays/engine`;

    const result = await trySkill(fetchPage, { url });

    expect(result).toMatchObject({
      url,
      status: 200,
      content_type: 'text/html',
      byline: 'Ada Lovelace',
      description: 'Notes on the engine.',
      site_name: 'The Loom',
      language: 'en-GB',
      truncated: false,
    });
    expect(result.title).toMatch(/^On Engines/);
    expect(result.markdown).toContain('The engine weaves');
    expect(result.markdown).toContain('```\nfor n in range(7):\n    bernoulli(n)\n```');
    expect(result.markdown).not.toMatch(/scripted|javascript:|data:image|Imprint/);
  });

  test('has absolute links, each once, from the whole page', async () => {
    const origin = await served(page(article));

    const { links, markdown } = await trySkill(fetchPage, { url: `${origin}/essays/engine` });

    expect(links).toEqual([
      { text: 'Home', url: `${origin}/` },
      { text: 'About us', url: `${origin}/about?x=1#top` },
      { text: 'note G', url: `${origin}/essays/notes/g` },
    ]);
    expect(markdown).toContain(`[note G](${origin}/essays/notes/g)`);
    expect(markdown).toContain(`![A figure](${origin}/essays/figure.png)`);
  });

  test('may name another base for its links, and be asked for fewer', async () => {
    const html = article.replace('<head>', '<head><base href="https://other.example/x/">');
    const url = await served(page(html));

    const { links } = await trySkill(fetchPage, { url, max_links: 2 });

    expect(links.map((link) => link.url)).toEqual([
      'https://other.example/',
      'https://other.example/about?x=1#top',
    ]);
  });

  test('is cut at the characters asked for', async () => {
    const url = await served(page(article));

    const { markdown, truncated } = await trySkill(fetchPage, { url, max_characters: 100 });

    expect([markdown.length, truncated]).toEqual([100, true]);
  });

  test('is found behind a redirect, whose end is told', async () => {
    const origin = await served((request, response) => {
      if (request.url === '/old') response.writeHead(301, { location: '/new' }).end();
      else page(article)(request, response);
    });

    expect((await trySkill(fetchPage, { url: `${origin}/old` })).url).toBe(`${origin}/new`);
  });
});

describe('pages of any quality are read', () => {
  test.each([
    ['no markup at all', 'just text', 'just text'],
    ['no body', '<title>T</title><p>short', 'short'],
    ['nothing', '', ''],
    ['a list of links', '<ul><li><a href="/a">A</a></li></ul>', '[A]'],
    ['a table', '<table><tr><th>a</th></tr><tr><td>1</td></tr></table>', '| a |\n| --- |\n| 1 |'],
  ])('%s', async (_what, html, text) => {
    const result = await trySkill(fetchPage, { url: await served(page(html)) });

    expect(result.markdown).toContain(text);
  });

  test('elements that nest very deep are read without taking for ever', async () => {
    const html = `${'<div>'.repeat(600)}deep${'</div>'.repeat(600)}`;

    const { markdown } = await trySkill(fetchPage, { url: await served(page(html)) });

    expect(markdown).toBe('deep');
  });

  test.each([
    ['by its header', 'text/html; charset=shift_jis', Buffer.from([0x82, 0xb1])],
    [
      'by its meta element',
      'text/html',
      Buffer.concat([Buffer.from('<meta charset=shift_jis>'), Buffer.from([0x82, 0xb1])]),
    ],
  ])('in another encoding, known %s', async (_how, type, bytes) => {
    const { markdown } = await trySkill(fetchPage, { url: await served(page(bytes, type)) });

    expect(markdown).toBe('こ');
  });

  test('a page too long is read as far as it goes', async () => {
    const html = `<p>${prose}</p>`.repeat(20_000);

    const { truncated, markdown } = await trySkill(fetchPage, { url: await served(page(html)) });

    expect(truncated).toBe(true);
    expect(markdown.length).toBeLessThanOrEqual(100_000);
  }, 30_000);
});

describe('what is not HTML', () => {
  test.each([
    ['text/plain', 'a *b*', 'a *b*'],
    ['text/markdown; charset=utf-8', '# A', '# A'],
    ['application/json', '{"a":1}', '```json\n{"a":1}\n```'],
    ['application/ld+json', '{"a":"```"}', '````json\n{"a":"```"}\n````'],
    ['application/rss+xml', '<rss/>', '```xml\n<rss/>\n```'],
    ['', 'words', 'words'],
    ['application/octet-stream', 'words', '```\nwords\n```'],
  ])('as %j is returned as it is', async (type, body, markdown) => {
    const result = await trySkill(fetchPage, { url: await served(page(body, type)) });

    expect(result).toMatchObject({ markdown, title: '', links: [] });
  });

  test('but looks like it is read as HTML where nothing else is said', async () => {
    const url = await served(page(' <!doctype html><title>T</title><p>x', ''));

    expect(await trySkill(fetchPage, { url })).toMatchObject({
      title: 'T',
      content_type: 'text/html',
    });
  });

  test.each([
    ['image/png', Buffer.from('89504e470d0a1a0a0000', 'hex')],
    ['application/pdf', Buffer.from('%PDF-1.7\n\x00\xff', 'latin1')],
    ['', Buffer.from([0, 1, 2])],
  ])('and no text (%s) is refused', async (type, bytes) => {
    const url = await served(page(bytes, type));

    await expect(trySkill(fetchPage, { url })).rejects.toMatchObject({
      message: expect.stringContaining('not a page'),
      retryable: false,
    });
  });
});

describe('a page that cannot be had', () => {
  test('is returned as the server has it when the fault is the url', async () => {
    const url = await served(page('<title>Not found</title><p>No such page.', 'text/html', 404));

    expect(await trySkill(fetchPage, { url })).toMatchObject({ status: 404, title: 'Not found' });
  });

  test.each([500, 502, 503, 429])('is worth another attempt after status %i', async (status) => {
    const url = await served(page('busy', 'text/plain', status));

    await expect(trySkill(fetchPage, { url })).rejects.toMatchObject({
      code: 'upstream_unavailable',
      retryable: true,
    });
  });

  test('is worth another attempt after the time that the server asks for', async () => {
    const url = await served((_request, response) =>
      response.writeHead(503, { 'retry-after': '7' }).end(),
    );

    await expect(trySkill(fetchPage, { url })).rejects.toMatchObject({ retryAfterMs: 7_000 });
  });

  test('is worth another attempt when the server does not answer', async () => {
    const url = await served(() => undefined);

    await expect(trySkill(fetchPage, { url, timeout_ms: 100 })).rejects.toMatchObject({
      code: 'upstream_unavailable',
      retryable: true,
    });
  });

  test.each(['file:///etc/passwd', 'http://10.0.0.1/', 'http://[::1]/', 'no url'])(
    'is not asked for again when it is %s',
    async (url) => {
      await expect(trySkill(fetchPage, { url })).rejects.toMatchObject({
        code: 'skill_execution_failed',
        retryable: false,
      });
    },
  );

  test('because it redirects inside is not asked for again', async () => {
    const secret = await receiveHttp(page('secret'));
    receivers.push(secret);
    const url = await served((_request, response) =>
      response.writeHead(302, { location: `http://127.0.0.2:${secret.port}/` }).end(),
    );

    await expect(trySkill(fetchPage, { url })).rejects.toMatchObject({ retryable: false });
    expect(secret.connections()).toBe(0);
  });

  test('because the run was cancelled fails with the reason of that', async () => {
    const run = new AbortController();
    const reason = new Error('cancelled');
    const url = await served(() => run.abort(reason));

    await expect(trySkill(fetchPage, { url }, { signal: run.signal })).rejects.toBe(reason);
  });

  test("because the operator's list is broken names the variable", async () => {
    vi.stubEnv('SKILLS_ALLOW_CIDRS', '10.0.0.0/33');

    await expect(trySkill(fetchPage, { url: 'https://example.com/' })).rejects.toThrow(
      'SKILLS_ALLOW_CIDRS: "10.0.0.0/33" needs a prefix length',
    );
  });
});
