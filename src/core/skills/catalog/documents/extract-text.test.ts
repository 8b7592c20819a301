import { readFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { type Receiver, receiveHttp } from '../../../../../test/fixtures/receiver/receiver.ts';
import { allows, trySkill } from '../../../../../test/support/try-skill.ts';
import { archiveOf } from '../../../../../test/support/zip-archive.ts';
import extractText from './extract-text.ts';

const fixtures = new URL('../../../../../test/fixtures/documents/', import.meta.url);
const fixture = (name: string) => readFileSync(new URL(name, fixtures));
const extract = (bytes: Buffer | string, more = {}) =>
  trySkill(extractText, { base64: Buffer.from(bytes).toString('base64'), ...more });

/** A PDF of one empty page; `trailer` goes into its trailer. */
function pdf(trailer: string): string {
  return [
    '%PDF-1.4',
    '1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj',
    '2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj',
    '3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>endobj',
    `trailer<</Root 1 0 R${trailer}>>`,
    '%%EOF',
  ].join('\n');
}

const contentTypes =
  '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>';
const word = 'http://schemas.openxmlformats.org/wordprocessingml/2006/main';
const docx = (body: string) =>
  archiveOf([
    { name: '[Content_Types].xml', content: contentTypes },
    {
      name: 'word/document.xml',
      content: `<w:document xmlns:w="${word}"><w:body>${body}</w:body></w:document>`,
    },
  ]);

describe('a PDF', () => {
  test('gives the text of its pages, its title and what else it says of itself', async () => {
    const result = await extract(fixture('report.pdf'));

    expect(result).toMatchObject({
      format: 'pdf',
      pages: 2,
      title: 'Annual report',
      metadata: { created_at: expect.stringMatching(/^2026-11-20T/) },
      characters: result.text.length,
      truncated: false,
    });
    expect(result.text).toMatch(/^Summary\nThe engine weaves algebraic patterns/);
    expect(result.text).toMatch(/\n\nFigures\nZürich sold 42 looms — €1,200 each\.$/);
  });

  test('without text gives none', async () => {
    expect(await extract(pdf(''))).toMatchObject({ format: 'pdf', pages: 1, text: '' });
  });

  test('is found behind other bytes at its start', async () => {
    const shifted = Buffer.concat([Buffer.from('\n\n#!junk\n'), fixture('report.pdf')]);

    expect((await extract(shifted)).pages).toBe(2);
  });

  test('is cut at the characters asked for', async () => {
    const result = await extract(fixture('report.pdf'), { max_characters: 100 });

    expect(result).toMatchObject({ characters: 100, truncated: true, pages: 2 });
  });
});

describe('a Word document', () => {
  test('gives its paragraphs and tables, its title and its author', async () => {
    const result = await extract(fixture('report.docx'));

    expect(result).toMatchObject({
      format: 'docx',
      title: 'Annual report',
      metadata: {
        author: 'Ada Lovelace',
        subject: 'Looms',
        created_at: expect.stringMatching(/^2026-11-20T.*Z$/),
      },
      truncated: false,
    });
    expect(result.text).toBe(
      'Summary\n\nThe engine weaves algebraic patterns.\n\nCity\n\nLooms\n\nZürich\n\n42',
    );
    expect(result.pages).toBeUndefined();
  });

  test('may be as plain as can be', async () => {
    const { text, metadata } = await extract(docx('<w:p><w:r><w:t>Hi</w:t></w:r></w:p>'));

    expect([text, metadata]).toEqual(['Hi', {}]);
  });
});

describe('other documents', () => {
  test.each([
    ['<html><body><p>a</p><p>b</p></body></html>', 'html', 'a\n\nb'],
    ['  <!DOCTYPE html><title>T</title>x', 'html', 'x'],
    ['plain <3 text', 'text', 'plain <3 text'],
    ['\uFEFFwith a mark', 'text', 'with a mark'],
    ['a\r\nb', 'text', 'a\r\nb'],
  ])('%j is %s', async (document, format, text) => {
    expect(await extract(document)).toMatchObject({ format, text });
  });

  test('HTML says who wrote it', async () => {
    const html =
      '<html lang="de"><meta charset=latin1><meta name=author content="J\xfcrg"><meta name=keywords content="a, b"><p>\xe4';

    expect(await extract(Buffer.from(html, 'latin1'))).toMatchObject({
      text: 'ä',
      metadata: { author: 'Jürg', keywords: 'a, b', language: 'de' },
    });
  });

  test('a hint decides between HTML and text, and against nothing else', async () => {
    const html = '<p>a</p>';

    expect(await extract(html, { format: 'text' })).toMatchObject({ format: 'text', text: html });
    expect(await extract('a &amp; b', { format: 'html' })).toMatchObject({ text: 'a & b' });
    await expect(extract(html, { format: 'pdf' })).rejects.toThrow('is not PDF but HTML');
    await expect(extract(pdf(''), { format: 'docx' })).rejects.toThrow('is not DOCX but PDF');
  });

  test('base64 may have line ends, be for urls or in a data: url', async () => {
    const bytes = Buffer.from('??>>~~ text');
    const base64 = bytes.toString('base64');

    const written = [
      base64,
      base64.replace(/(.{4})/g, '$1\n'),
      bytes.toString('base64url'),
      `data:text/plain;base64,${base64}`,
    ];
    const texts = await Promise.all(written.map((b) => trySkill(extractText, { base64: b })));

    expect(new Set(texts.map(({ text }) => text))).toEqual(new Set(['??>>~~ text']));
  });
});

describe('a document that cannot be read says why, and is not tried again', () => {
  const encrypted =
    '/ID[<00><00>]/Encrypt<</Filter/Standard/V 1/R 2/P -4' +
    `/O<${'11'.repeat(32)}>/U<${'22'.repeat(32)}>>>`;
  const oldOffice = Buffer.concat([Buffer.from('d0cf11e0a1b11ae1', 'hex'), Buffer.alloc(600)]);

  test.each<[string, Buffer | string, string]>([
    ['a PDF with a password', pdf(encrypted), 'encrypted and needs a password'],
    ['a PDF cut off', fixture('report.pdf').subarray(0, 300), 'The PDF is damaged'],
    ['a PDF of nothing but its name', '%PDF-1.7', 'The PDF is damaged'],
    ['a DOCX cut off', fixture('report.docx').subarray(0, 4000), 'The document is damaged'],
    ['a DOCX of broken XML', docx('<w:p>').fill(0x20, 200, 210), 'damaged'],
    ['a DOCX without closing tags', docx('<w:p><oops></w:p>'), 'The Word document is damaged'],
    ['another archive', archiveOf([{ name: 'a', content: 'b' }]), 'without a Word document'],
    ['an old Word document', oldOffice, 'the time before DOCX'],
    [
      'a Word document with a password',
      Buffer.concat([oldOffice, Buffer.from('EncryptedPackage', 'utf16le')]),
      'The document is encrypted',
    ],
    ['RTF', '{\\rtf1 hello}', 'an RTF document'],
    ['an image', Buffer.from('89504e470d0a1a0a0000', 'hex'), 'no document known here'],
    [
      'a DOCX that is a bomb',
      archiveOf([{ name: 'word/document.xml', content: Buffer.alloc(70_000_000, ' ') }]),
      'unpacks to more than is allowed',
    ],
  ])('%s', async (_what, bytes, message) => {
    await expect(extract(bytes)).rejects.toMatchObject({
      name: 'SkillError',
      message: expect.stringContaining(message),
      retryable: false,
    });
  });

  test('what is no base64', async () => {
    await expect(trySkill(extractText, { base64: 'a*b' })).rejects.toMatchObject({
      message: 'The document is not valid base64',
      retryable: false,
    });
  });
});

test('a document is given in one way, not two and not none', () => {
  expect(allows(extractText.parameters, {})).toBe(false);
  expect(allows(extractText.parameters, { base64: 'YQ==', url: 'https://example.com/' })).toBe(
    false,
  );
});

describe('a document behind a url', () => {
  const receivers: Receiver[] = [];
  afterEach(async () => {
    vi.unstubAllEnvs();
    for (const receiver of receivers.splice(0)) await receiver.close();
  });

  async function served(handler: RequestListener): Promise<string> {
    vi.stubEnv('SKILLS_ALLOW_CIDRS', '127.0.0.0/8');
    const receiver = await receiveHttp(handler);
    receivers.push(receiver);
    return `${receiver.origin}/document`;
  }

  test('is fetched, and read for what it is', async () => {
    const url = await served((_request, response) =>
      response.writeHead(200, { 'content-type': 'text/html' }).end(fixture('report.pdf')),
    );

    expect(await trySkill(extractText, { url })).toMatchObject({ format: 'pdf', pages: 2 });
  });

  test('is decoded by its content type', async () => {
    const url = await served((_request, response) =>
      response
        .writeHead(200, { 'content-type': 'text/plain; charset=iso-8859-1' })
        .end(Buffer.from('<p>Z\xfcrich', 'latin1')),
    );

    expect(await trySkill(extractText, { url })).toMatchObject({
      format: 'text',
      text: '<p>Zürich',
    });
  });

  test.each([
    [404, false, 'skill_execution_failed'],
    [403, false, 'skill_execution_failed'],
    [503, true, 'upstream_unavailable'],
    [429, true, 'upstream_unavailable'],
  ])('that answers with %i: worth another attempt is %s', async (status, retryable, code) => {
    const url = await served((_request, response) => response.writeHead(status).end('no'));

    await expect(trySkill(extractText, { url })).rejects.toMatchObject({
      message: `127.0.0.1 answered with status ${status}`,
      retryable,
      code,
    });
  });

  test('that is inside is refused', async () => {
    const url = await served((_request, response) => response.end('secret'));
    vi.stubEnv('SKILLS_ALLOW_CIDRS', '');

    await expect(trySkill(extractText, { url })).rejects.toMatchObject({ retryable: false });
    expect(receivers[0]?.connections()).toBe(0);
  });
});
