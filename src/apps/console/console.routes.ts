/**
 * The HTTP routes of the console: its files and its sessions. The page may load scripts and styles only
 * from this platform, and connect only to it.
 */
import { Type } from 'typebox';
import type { Server } from '../../adapters/http/server.ts';
import { pageHeaders, sendAsset } from '../../adapters/http/static-files.ts';
import type { OpenStreams } from '../../adapters/http/streams.ts';
import { isWrongSecret, type WrongSecrets } from '../../adapters/http/wrong-secrets.ts';
import { notFound } from '../../kernel/errors.ts';
import type { ConsoleFiles } from './files.ts';
import type { Sessions } from './sessions.ts';

const headers = pageHeaders("style-src 'self'", "font-src 'self'", "form-action 'self'");

/** How often the page looks whether it is built. */
const buildLookSeconds = 2;
/** Shown while the console is being built; loads itself again. */
const builtSoon = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="color-scheme" content="light dark">
<meta name="viewport" content="width=device-width">
<meta http-equiv="refresh" content="${buildLookSeconds}">
<title>Skillwright</title>
<h1>The console is being built</h1>
<p>Its sources are new since the last start, so the platform builds it, which takes some seconds. This page then shows it.
The API is ready.</p>
</html>
`;

const SignIn = Type.Object(
  { secret: Type.String({ minLength: 1, maxLength: 4_096 }) },
  { additionalProperties: false },
);

/** `/` redirects to `/console/`. Each path below it that is no file is a location within the page. */
export function consoleRoutes(
  server: Server,
  deps: {
    files: ConsoleFiles;
    sessions: Sessions;
    wrongSecrets: WrongSecrets;
    streams: OpenStreams;
  },
): void {
  const { files, sessions, wrongSecrets, streams } = deps;
  const schema = { hide: true };
  for (const path of ['/', '/console']) {
    server.get(path, { schema }, (_request, reply) => reply.redirect('/console/', 302));
  }
  const signIn = { schema: { ...schema, body: SignIn } };
  server.post('/console/session', signIn, async (request, reply) => {
    const { cookie, session, sessionId } = await sessions
      .open(request, request.body.secret)
      .catch((error: unknown) => {
        if (isWrongSecret(error)) wrongSecrets.audit(request);
        throw error;
      });
    const holder = { kind: session.kind, api_key_id: session.api_key_id };
    const facts = { address: request.clientAddress, request_id: request.id };
    request.log.info(
      { audit: 'signed_in', session_id: sessionId, ...holder, ...facts },
      'signed in',
    );
    return reply.headers({ 'set-cookie': cookie, ...unkept }).send(session);
  });
  server.get('/console/session', { schema }, async (request, reply) => {
    const read = await sessions.read(request);
    if (read === null) return reply.status(204).headers(unkept).send();
    if (read.cookie !== null) reply.header('set-cookie', read.cookie);
    return reply.headers(unkept).send(read.session);
  });
  server.delete('/console/session', { schema }, async (request, reply) => {
    const { cookie, sessionId } = await sessions.end(request);
    if (sessionId !== null) {
      streams.endThoseOf(sessionId);
      const facts = { address: request.clientAddress, request_id: request.id };
      request.log.info({ audit: 'signed_out', session_id: sessionId, ...facts }, 'signed out');
    }
    reply.header('set-cookie', cookie);
    return reply.status(204).send();
  });
  server.get('/console/*', { schema }, (request, reply) => {
    const name = (request.params as { '*': string })['*'];
    if (/(?:^|\/)\./.test(name)) throw notFound('File');
    const isAsset = name.startsWith('assets/');
    // Files lie only next to the page; a dot further down belongs to a location, for example v1.0.
    const file = isAsset || /^[\w-]+\.\w+$/.test(name) ? name : 'index.html';
    const root = files.directoryFor(file === 'index.html' ? 'page' : 'part');
    if (root === null) {
      const wait = { 'retry-after': String(buildLookSeconds) };
      return reply
        .status(503)
        .headers({ ...headers, ...wait })
        .type('text/html')
        .send(builtSoon);
    }
    if (isAsset) return sendAsset(reply, name, root);
    return reply.headers(headers).sendFile(file, root, { cacheControl: false });
  });
}

const unkept = { 'cache-control': 'no-store' };
