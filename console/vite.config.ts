/** Builds the console into files for `/console/`; compress.ts then compresses them. */
import tailwindcss from '@tailwindcss/vite';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

/** Smaller chunks, before they are compressed, become parts of others. */
const sharedBytesMin = 15_000;

export default defineConfig({
  base: '/console/',
  plugins: [react(), tailwindcss()],
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
