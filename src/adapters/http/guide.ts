/**
 * `/docs/guide/`: the guides for people, as `npm run docs:build` makes them of docs/. They are public, as the
 * reference at `/docs` is, and use no other host. A package contains them; a checkout is served without them
 * until they are built, because no start waits for them.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { FastifyReply } from 'fastify';
import { notFound, PlatformError } from '../../kernel/errors.ts';
import type { Server } from './server.ts';
import { pageHeaders, sendAsset } from './static-files.ts';

export const builtGuide = join(import.meta.dirname, '../../../docs/dist');

/**
 * The pages have no inline scripts. Styles are also attributes of elements, as in highlighted code, which no
 * hash of a policy reaches.
 */
const headers = pageHeaders(
  "style-src 'self'",
  "style-src-attr 'unsafe-inline'",
  "form-action 'none'",
);

/** The path of a page, without its ending. No dot: the path leads to nothing outside of the folder. */
const pagePath = /^(?:[\w-]+\/)*[\w-]*$/;

export function guideRoutes(server: Server, { folder }: { folder: string }): void {
  const schema = { hide: true };
  server.get('/docs/guide', { schema }, (_request, reply) => reply.redirect('/docs/guide/', 302));
  server.get('/docs/guide/*', { schema }, (request, reply) => {
    const name = (request.params as { '*': string })['*'];
    if (!existsSync(join(folder, 'index.html'))) throw notBuilt();
    if (name.startsWith('assets/') && !name.includes('/.')) {
      return sendAsset(reply, name, folder);
    }
    if (/^[\w-]+\.(?!html$)\w+$/.test(name)) {
      return reply.headers(headers).sendFile(name, folder, { cacheControl: false });
    }
    return sendPage(reply, folder, name.replace(/\.html$/, ''));
  });
}

function sendPage(reply: FastifyReply, folder: string, path: string): FastifyReply {
  if (!pagePath.test(path)) throw notFound('Page');
  const file = path === '' || path.endsWith('/') ? `${path}index.html` : `${path}.html`;
  reply.headers(headers);
  if (existsSync(join(folder, file))) return reply.sendFile(file, folder, { cacheControl: false });
  // Without a tag, so that it is never answered with 304 in place of its content.
  const unkept = { cacheControl: false, etag: false, lastModified: false };
  return reply.status(404).sendFile('404.html', folder, unkept);
}

function notBuilt(): PlatformError {
  return new PlatformError(
    'not_found',
    'The guides are not built: npm run docs:build in the checkout builds them, without a restart',
  );
}
