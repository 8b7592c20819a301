/**
 * Extracts the text of DOCX files. Runs in a sandboxed process. Unpacks the archive within limits first,
 * because the library then unpacks it without limits.
 */

import { type DocumentText, isoDate, metadataOf, titled } from './document-text.ts';
import { unzip, type ZipEntries } from './zip.ts';

const unpackedBytesMax = 64 * 1024 * 1024;

/** Reads the text of a Word document, in the order of its paragraphs. */
export async function readDocx(bytes: Buffer): Promise<DocumentText> {
  const entries = unzip(bytes, unpackedBytesMax);
  if (!entries.has('word/document.xml')) {
    throw new Error('This is a ZIP archive without a Word document in it');
  }
  const { default: mammoth } = await import('mammoth');
  const { value } = await mammoth.extractRawText({ buffer: bytes }).catch((error: unknown) => {
    const message = error instanceof Error ? error.message : String(error);
    throw new Error(`The Word document is damaged: ${message.split('\n')[0]}`);
  });
  return { text: value.replace(/\n{3,}/g, '\n\n').trim(), ...(await docxFacts(entries)) };
}

async function docxFacts(entries: ZipEntries) {
  const { DOMParser } = await import('linkedom');
  const xml = entries.get('docProps/core.xml')?.toString('utf8') ?? '<none/>';
  const document = new DOMParser().parseFromString(xml, 'text/xml');
  const fact = (name: string): string | undefined =>
    document.getElementsByTagName(name)[0]?.textContent;
  return {
    ...titled(fact('dc:title')),
    metadata: metadataOf({
      author: fact('dc:creator'),
      subject: fact('dc:subject'),
      keywords: fact('cp:keywords'),
      language: fact('dc:language'),
      created_at: isoDate(fact('dcterms:created')),
      modified_at: isoDate(fact('dcterms:modified')),
    }),
  };
}
