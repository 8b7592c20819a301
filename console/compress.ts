/**
 * `compress.ts DIRECTORY` writes beside each built file the same compressed as browsers take it: once here, and
 * not for each request.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

/** Smaller ones gain nothing. */
const compressedBytesMin = 1_024;

const [directory] = process.argv.slice(2);
if (directory === undefined) throw new Error('Name the directory of the built files.');
for (const name of readdirSync(directory, { recursive: true, encoding: 'utf8' })) {
  if (!/\.(?:js|css|svg|html)$/.test(name)) continue;
  const file = join(directory, name);
  const bytes = readFileSync(file);
  if (bytes.length < compressedBytesMin) continue;
  writeFileSync(`${file}.gz`, gzipSync(bytes, { level: 9 }));
  const params = { [constants.BROTLI_PARAM_QUALITY]: 9 };
  writeFileSync(`${file}.br`, brotliCompressSync(bytes, { params }));
}
