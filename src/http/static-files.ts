/** Replies with files of folders that their routes name. A file is sent compressed where a compressed one lies beside it. */
import fastifyStatic from '@fastify/static';
import type { Server } from './server.ts';

/** Browsers keep files whose names change with their content. */
export const keptByBrowsers = { immutable: true, maxAge: 31_536_000_000 };

/** Adds `reply.sendFile`. */
export function sendsFiles(server: Server): void {
  server.register(fastifyStatic, {
    serve: false,
    preCompressed: true,
    dotfiles: 'ignore',
    root: import.meta.dirname,
  });
}
