/**
 * `compress.ts DIRECTORY` writes beside each built file the same compressed as browsers take it: once here, and
 * not for each request.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

/** Smaller ones gain nothing. */
const compressedBytesMin = 1_024;
/** Of what brotli saves of a file beside gzip. A package may have 1,500 files, and most parts of pages save less. */
const savedBytesMin = 512;

const [directory] = process.argv.slice(2);
if (directory === undefined) throw new Error('Name the directory of the built files.');
for (const name of readdirSync(directory, { recursive: true, encoding: 'utf8' })) {
  if (!/\.(?:js|css|svg|html)$/.test(name)) continue;
  const file = join(directory, name);
  const bytes = readFileSync(file);
  if (bytes.length < compressedBytesMin) continue;
  const gzipped = gzipSync(bytes, { level: 9 });
  writeFileSync(`${file}.gz`, gzipped);
  const params = { [constants.BROTLI_PARAM_QUALITY]: 9 };
  const brotli = brotliCompressSync(bytes, { params });
  if (gzipped.length - brotli.length >= savedBytesMin) writeFileSync(`${file}.br`, brotli);
}
