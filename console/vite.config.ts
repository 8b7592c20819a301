/** Builds the console into files for `/console/`, and beside each one compressed as browsers take it. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import tailwindcss from '@tailwindcss/vite';
import react from '@vitejs/plugin-react';
import { defineConfig, type Plugin } from 'vite';

/** Smaller ones gain nothing. */
const compressedBytesMin = 1_024;

/** Smaller chunks, before they are compressed, become parts of others. */
const sharedBytesMin = 15_000;

/** Compressed once here and not for each request. */
function compressed(): Plugin {
  return {
    name: 'compressed',
    apply: 'build',
    writeBundle({ dir }) {
      if (dir === undefined) return;
      for (const name of readdirSync(dir, { recursive: true, encoding: 'utf8' })) {
        if (!/\.(?:js|css|svg|html)$/.test(name)) continue;
        const file = join(dir, name);
        const bytes = readFileSync(file);
        if (bytes.length < compressedBytesMin) continue;
        writeFileSync(`${file}.gz`, gzipSync(bytes, { level: 9 }));
        const params = { [constants.BROTLI_PARAM_QUALITY]: 9 };
        writeFileSync(`${file}.br`, brotliCompressSync(bytes, { params }));
      }
    },
  };
}

export default defineConfig({
  base: '/console/',
  plugins: [react(), tailwindcss(), compressed()],
  build: {
    target: 'es2023',
    modulePreload: { polyfill: false },
    // The content security policy lets no data: address be a font or a script.
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    // The shell, 180 KB when compressed.
    chunkSizeWarningLimit: 700,
    // The licences of what the files contain ask for their texts.
    license: { fileName: 'licenses.md' },
    rolldownOptions: {
      output: {
        // One chunk of what every page needs, and few of what some pages share: each chunk is a request, and left
        // alone a page needs ninety.
        codeSplitting: {
          groups: [
            { name: 'shell', tags: ['$initial'], priority: 1 },
            {
              name: 'shared',
              minShareCount: 2,
              entriesAware: true,
              entriesAwareMergeThreshold: sharedBytesMin,
            },
          ],
        },
        // The names of groups list the pages that share them.
        chunkFileNames: ({ name }) =>
          `assets/${name.startsWith('shared~') ? 'shared' : '[name]'}-[hash].js`,
      },
    },
  },
  server: {
    // For work on the console itself: `npm run console:dev` beside a running platform.
    proxy: Object.fromEntries(
      ['/api', '/admin', '/health', '/console/session'].map((path) => [
        path,
        process.env['SKILLWRIGHT_URL'] ?? 'http://127.0.0.1:3000',
      ]),
    ),
  },
});
