/** Extracts the text of PDF files. Runs in a sandboxed process: a hostile file can take any time. */

import { type DocumentText, isoDate, metadataOf, titled } from './document-text.ts';

/** Reads pages until there are more than `charactersMax` characters. */
export async function readPdf(bytes: Buffer, charactersMax: number): Promise<DocumentText> {
  const { getDocumentProxy } = await import('unpdf');
  const pdf = await getDocumentProxy(new Uint8Array(bytes), {
    verbosity: 0,
  }).catch((error: unknown) => {
    throw pdfFault(error);
  });
  const pages: string[] = [];
  let characters = 0;
  for (let number = 1; number <= pdf.numPages && characters <= charactersMax; number++) {
    const page = await pdf.getPage(number).catch((error: unknown) => {
      throw pdfFault(error);
    });
    const { items } = await page.getTextContent();
    const text = tidy(items.map((item) => ('str' in item ? lineOf(item) : '')).join(''));
    pages.push(text);
    characters += text.length;
    page.cleanup();
  }
  const { info } = await pdf.getMetadata();
  const about = info as Readonly<Record<string, unknown>>;
  return {
    text: pages.join('\n\n').trim(),
    pages: pdf.numPages,
    ...titled(about['Title']),
    metadata: metadataOf({
      author: about['Author'],
      subject: about['Subject'],
      keywords: about['Keywords'],
      language: about['Language'],
      created_at: pdfDate(about['CreationDate']),
      modified_at: pdfDate(about['ModDate']),
    }),
  };
}

function lineOf(item: { readonly str: string; readonly hasEOL: boolean }): string {
  return item.hasEOL ? `${item.str}\n` : item.str;
}

function tidy(text: string): string {
  const collapsed = text.replace(/[^\S\n]+/g, ' ').replace(/ ?\n ?/g, '\n');
  return collapsed.trim();
}

function pdfFault(error: unknown): Error {
  const { name, message } = error as { name?: unknown; message?: unknown };
  return name === 'PasswordException'
    ? new Error('The document is encrypted and needs a password')
    : new Error(`The PDF is damaged: ${String(message)}`);
}

/** `D:20260131235959+01'00'` as ISO 8601; undefined for an invalid date. */
function pdfDate(value: unknown): string | undefined {
  const parts = /^D:(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?([Z+-])?(\d\d)?'?(\d\d)?/.exec(
    typeof value === 'string' ? value : '',
  );
  if (parts === null) return undefined;
  const [, year, month = '01', day = '01', hour = '00', minute = '00', second = '00'] = parts;
  const [sign, hours = '00', minutes = '00'] = parts.slice(7);
  const zone = sign === '+' || sign === '-' ? `${sign}${hours}:${minutes}` : 'Z';
  return isoDate(`${year}-${month}-${day}T${hour}:${minute}:${second}${zone}`);
}
