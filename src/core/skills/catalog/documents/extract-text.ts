/**
 * Extracts the text of a document. The first bytes decide the kind of document, not its name. Documents
 * are untrusted and may be decompression bombs, so they are parsed in a sandboxed process.
 */

import { defineSkill, SkillError } from '../../definition.ts';
import { cleanText, cut } from '../_support/clean-text.ts';
import { decodeText, looksBinary, mediaType } from '../_support/decode-text.ts';
import { type DocumentText, metadata, metadataOf, titled } from '../_support/document-text.ts';
import { readDocx } from '../_support/docx.ts';
import { assertAvailable, fetchOutside, header } from '../_support/fetching.ts';
import { readHtml, textOf } from '../_support/html.ts';
import { inSandbox } from '../_support/in-sandbox.ts';
import { readPdf } from '../_support/pdf.ts';
import { integer, objectWith, type Static, urlWith } from '../_support/schemas.ts';

const formats = ['pdf', 'docx', 'html', 'text'] as const;
type Format = (typeof formats)[number];

export interface DocumentOrder {
  readonly base64: string;
  readonly contentType: string;
  readonly hint: Format | null;
  readonly charactersMax: number;
}

const documentBytesMax = 20 * 1024 * 1024;
const base64LengthMax = Math.ceil(documentBytesMax / 3) * 4 + 1024;
const fetchTimeoutMs = 30_000;
const reading = {
  module: import.meta.url,
  function: 'extract',
  timeoutMs: 60_000,
  memoryMb: 256,
};

const parameters = {
  type: 'object',
  additionalProperties: false,
  properties: {
    base64: {
      type: 'string',
      minLength: 1,
      maxLength: base64LengthMax,
      description: 'The document in base64; a data: url is understood too.',
    },
    url: urlWith('Absolute http or https url of the document.'),
    format: {
      type: 'string',
      enum: formats,
      description: 'What it should be; otherwise found out from its content.',
    },
    max_characters: integer(
      { minimum: 100, maximum: 250_000, default: 200_000 },
      'Characters of text to return; the rest is cut off.',
    ),
  },
  oneOf: [{ required: ['base64'] }, { required: ['url'] }],
} as const;
const output = objectWith(['text', 'format', 'metadata', 'characters', 'truncated'], {
  text: { type: 'string', description: 'Text, with blank lines between pages.' },
  format: { type: 'string', enum: formats, description: 'What the document is.' },
  pages: { type: 'integer', description: 'Pages of a PDF.' },
  title: { type: 'string', description: 'Title, where the document has one.' },
  metadata,
  characters: { type: 'integer', description: 'Length of the text returned.' },
  truncated: { type: 'boolean', description: 'Whether the document has more text.' },
});
type Input = Static<typeof parameters>;
type Output = Static<typeof output>;
type Extract = Omit<Output, 'characters'>;

export default defineSkill({
  category: 'documents',
  name: 'extract-text',
  version: 'v1.0',
  displayName: 'Extract text',
  description:
    'Extracts the text, title and metadata of a PDF, Word (DOCX), HTML or plain text document of ' +
    'up to 20 MiB, given in base64 or by its url. Scanned pages have no text; images are not read.',
  parameters,
  output,
  timeoutMs: 120_000,
  examples: [
    {
      input: {
        base64: 'PHRpdGxlPk5vdGU8L3RpdGxlPjxwPlRlYSBhdCA8Yj5mb3VyPC9iPi48L3A+',
      },
      output: {
        text: 'Tea at four.',
        format: 'html',
        title: 'Note',
        metadata: {},
        characters: 12,
        truncated: false,
      },
    },
  ],

  async run(input, ctx) {
    const { base64, contentType } = await documentOf(input, ctx.signal);
    const order: DocumentOrder = {
      base64,
      contentType,
      hint: input.format ?? null,
      charactersMax: input.max_characters ?? 200_000,
    };
    const { signal } = ctx;
    const extract = await inSandbox<Extract>({ ...reading, input: order, signal });
    return { ...extract, characters: extract.text.length };
  },
});

async function documentOf(input: Input, signal: AbortSignal) {
  if (input.url === undefined) return { base64: digitsOf(input.base64 ?? ''), contentType: '' };
  const response = await fetchOutside(input.url, {
    signal,
    timeoutMs: fetchTimeoutMs,
    maxBytes: documentBytesMax,
    redirects: 5,
  });
  assertAvailable(response);
  if (response.status < 200 || response.status > 299) {
    const { hostname } = new URL(response.url);
    throw new SkillError(`${hostname} answered with status ${response.status}`, {
      retryable: false,
    });
  }
  return {
    base64: response.body.toString('base64'),
    contentType: header(response, 'content-type'),
  };
}

/** Checks the text, because Buffer.from skips characters that are not base64. */
function digitsOf(text: string): string {
  const digits = text.replace(/^data:[^,]*;base64,/i, '').replace(/\s+/g, '');
  if (!/^[A-Za-z0-9+/_-]*={0,2}$/.test(digits)) {
    throw new SkillError('The document is not valid base64', { retryable: false });
  }
  return digits;
}

/** Parses a document. Runs in the sandbox. */
export async function extract(order: DocumentOrder): Promise<Extract> {
  const bytes = Buffer.from(order.base64, 'base64');
  const format = formatOf(bytes, order);
  const { text, ...about } = await readers[format](bytes, order);
  const kept = cut(cleanText(text), order.charactersMax);
  return { ...about, text: kept, format, truncated: kept.length < text.length };
}

type Read = (bytes: Buffer, order: DocumentOrder) => Promise<DocumentText>;

const readers: Readonly<Record<Format, Read>> = {
  pdf: (bytes, { charactersMax }) => readPdf(bytes, charactersMax),
  docx: readDocx,
  html: async (bytes, { contentType }) => {
    const document = await readHtml(decodeText(bytes, contentType));
    const meta = (name: string) =>
      document.querySelector(`meta[name="${name}"]`)?.getAttribute('content');
    return {
      text: textOf(document),
      ...titled(document.title),
      metadata: metadataOf({
        author: meta('author'),
        subject: meta('description'),
        keywords: meta('keywords'),
        language: document.documentElement.getAttribute('lang'),
      }),
    };
  },
  text: async (bytes, { contentType }) => ({
    text: decodeText(bytes, contentType).replace(/^\uFEFF/, ''),
    metadata: {},
  }),
};

/** The kind by the first bytes; the content type decides between HTML and text only. */
function formatOf(bytes: Buffer, { contentType, hint }: DocumentOrder): Format {
  const found = formatByContent(bytes, contentType);
  const isProse = found === 'html' || found === 'text';
  if (hint === null || hint === found) return found;
  if (isProse && (hint === 'html' || hint === 'text')) return hint;
  throw new Error(`The document is not ${hint.toUpperCase()} but ${found.toUpperCase()}`);
}

function formatByContent(bytes: Buffer, contentType: string): Format {
  // PDF allows other bytes before its header, and readers search the first 1,024 bytes.
  if (bytes.subarray(0, 1024 + 5).includes('%PDF-')) return 'pdf';
  if (bytes.subarray(0, 4).equals(Buffer.from('PK\x03\x04', 'latin1'))) return 'docx';
  if (bytes.subarray(0, 8).equals(Buffer.from('d0cf11e0a1b11ae1', 'hex'))) throw oldOffice(bytes);
  const start = bytes.subarray(0, 1024).toString('latin1');
  if (start.startsWith('{\\rtf')) throw unreadable('an RTF document');
  const type = mediaType(contentType);
  if (!type.startsWith('text/') && looksBinary(bytes)) throw unreadable('no document known here');
  if (type === 'text/html' || type === 'application/xhtml+xml') return 'html';
  if (/^text\/(plain|markdown|csv)$/.test(type)) return 'text';
  return /<(!doctype html|html|head|body|title|p|div|h1|table)[\s>]/i.test(start) ? 'html' : 'text';
}

/** Old Word files, and new ones with a password, come in the same container. */
function oldOffice(bytes: Buffer): Error {
  return bytes.includes(Buffer.from('EncryptedPackage', 'utf16le'))
    ? new Error('The document is encrypted')
    : unreadable('an Office document of the time before DOCX');
}

function unreadable(what: string): Error {
  return new Error(`This is ${what}; PDF, DOCX, HTML and plain text can be read`);
}
