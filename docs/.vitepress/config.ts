/**
 * The site of the guides, made of the pages in `docs/` by `npm run docs:build` and served at `/docs/guide/`. It
 * loads nothing from other hosts, and runs no inline script, so that the platform's content security
 * policy can refuse both.
 */
import { createHash } from 'node:crypto';
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { defineConfig } from 'vitepress';
import { anchorOf } from '../../scripts/check-doc-paths.ts';
import { asOnGitHub } from './markdown.ts';
import { sidebar } from './sidebar.ts';

const base = '/docs/guide/';
const root = join(import.meta.dirname, '../..');
/** The generator's own scripts of each page, by their file. */
const scripts = new Map<string, string>();

export default defineConfig({
  base,
  lang: 'en',
  title: 'Skillwright',
  titleTemplate: ':title · Skillwright',
  description: 'Guides of Skillwright, a self-hosted platform that runs skills for agents.',
  head: [['link', { rel: 'icon', type: 'image/svg+xml', href: `${base}icon.svg` }]],
  rewrites: { 'README.md': 'index.md', 'decisions/README.md': 'decisions/index.md' },
  cleanUrls: true,
  outDir: 'dist',
  cacheDir: join(root, '.cache/vitepress'),
  // Otherwise it adds a style sheet to the page for a moment.
  appearance: { disableTransition: false },
  markdown: {
    anchor: { slugify: anchorOf },
    config: asOnGitHub,
  },
  // The licences of what the scripts contain ask for their texts.
  vite: { build: { license: { fileName: 'licenses.txt' } } },
  themeConfig: {
    logo: '/icon.svg',
    search: { provider: 'local' },
    nav: [
      { text: 'Guide', link: '/start', activeMatch: '/' },
      { text: 'API reference', link: outside('docs'), target: '_self' },
      { text: 'Console', link: outside('console'), target: '_self' },
    ],
    sidebar,
    outline: [2, 3],
    externalLinkIcon: false,
    notFound: {
      title: 'Page not found',
      quote: 'The guides have no page at this address. The search may find what you look for.',
      linkLabel: 'go to the first page',
      linkText: 'To the first page',
    },
  },
  transformHtml: (html) =>
    html.replace(/(?:<script id="check-[^>]*>.*?<\/script>\s*)+/s, (inline) => {
      const code = [...inline.matchAll(/>(.*?)<\/script>/gs)].map(([, one]) => one).join(';\n');
      const hash = createHash('sha256').update(code).digest('hex').slice(0, 8);
      const file = `assets/before.${hash}.js`;
      scripts.set(file, code);
      return `<script src="${base}${file}"></script>\n`;
    }),
  buildEnd({ outDir }) {
    for (const [file, code] of scripts) {
      mkdirSync(dirname(join(outDir, file)), { recursive: true });
      writeFileSync(join(outDir, file), code);
    }
    copyFileSync(join(root, 'console/public/icon.svg'), join(outDir, 'icon.svg'));
  },
});

/** A page of the platform that is not one of the site: the generator puts the site's base before each link. */
function outside(path: string): string {
  return `/../../${path}/`;
}
