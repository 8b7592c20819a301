/** Serves static files. Sends the compressed variant of a file if there is one beside it. */
import fastifyStatic from '@fastify/static';
import type { FastifyReply } from 'fastify';
import type { Server } from './server.ts';

/** Browsers keep files whose names change with their content. */
const keptByBrowsers = { immutable: true, maxAge: 31_536_000_000 };

/** Adds `reply.sendFile`. */
export function sendsFiles(server: Server): void {
  server.register(fastifyStatic, {
    serve: false,
    preCompressed: true,
    dotfiles: 'ignore',
    root: import.meta.dirname,
  });
}

/** Replies with a file whose name changes with its content. */
export function sendAsset(reply: FastifyReply, name: string, folder: string): FastifyReply {
  reply.header('x-content-type-options', 'nosniff');
  return reply.sendFile(name, folder, keptByBrowsers);
}

/**
 * Headers of a page that loads scripts and images only from this platform and connects only to it. Its
 * directives say what else it needs.
 */
export const pageHeaders = (...directives: readonly string[]) => ({
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    ...directives,
    "connect-src 'self'",
    "img-src 'self' data:",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'referrer-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-cache',
});
