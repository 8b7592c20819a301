/**
 * `/docs`: the API reference for people, Scalar over `/openapi.json`. It uses no other
 * host: the features that would (fonts, telemetry, proxy, assistant, registry) are off, and the content
 * security policy blocks other hosts. It is loaded at the first request.
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { extname } from 'node:path';
import { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { createGunzip } from 'node:zlib';
import { lazily } from '../../kernel/lazy.ts';
import { nodeArguments } from '../../kernel/node-program.ts';
import { namesTag } from './conditional-reads.ts';
import { refusals } from './refusals.ts';
import type { Server } from './server.ts';
import { pageHeaders } from './static-files.ts';

const bundleProgram = fileURLToPath(
  new URL(`./docs-bundle${extname(import.meta.url)}`, import.meta.url),
);
const bundleBytesMax = 8 * 1024 * 1024;
const bundleTimeoutMs = 30_000;

/** See https://scalar.com/products/api-references/configuration. */
const configuration = {
  withDefaultFonts: false,
  telemetry: false,
  agent: { disabled: true },
  mcp: { disabled: true },
  showDeveloperTools: 'never',
  hideClientButton: true,
  orderSchemaPropertiesBy: 'preserve',
  theme: 'default',
  authentication: { preferredSecurityScheme: 'apiKey' },
  defaultHttpClient: { targetKey: 'shell', clientKey: 'curl' },
};

const attribute = (value: unknown) => JSON.stringify(value).replaceAll('"', '&quot;');

/** Relative addresses, so that it also works below the path of a proxy. */
const page = Buffer.from(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Skillwright API</title>
<link rel="icon" href="data:,">
</head>
<body>
<script id="api-reference" data-url="openapi.json" data-configuration="${attribute(configuration)}"></script>
<script src="docs/scalar.js"></script>
</body>
</html>
`);

/**
 * Scalar sets styles as attributes and elements as it renders, which no nonce reaches; scripts it
 * needs none but its own.
 */
const headers = {
  ...pageHeaders("style-src 'unsafe-inline'", "form-action 'none'"),
  'content-type': 'text/html; charset=utf-8',
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
};

/** `GET /docs` and the script that it needs. */
export function docsRoutes(server: Server) {
  const bundle = lazily(loadBundle);

  server.get(
    '/docs',
    {
      schema: {
        tags: ['Operations'],
        security: [],
        operationId: 'getDocs',
        summary: 'The API reference for people',
        response: {
          ...refusals(),
          200: {
            description: 'A page that shows this document without other hosts.',
            content: { 'text/html': { schema: { type: 'string', examples: ['<!doctype html>'] } } },
          },
        },
      },
    },
    async (_request, reply) => reply.headers(headers).send(page as never),
  );

  // Relative, as the addresses of the page are.
  server.get('/docs/', { schema: { hide: true } }, (_request, reply) =>
    reply.redirect('../docs', 302),
  );

  server.get('/docs/scalar.js', { schema: { hide: true } }, async (request, reply) => {
    const { gzip, etag } = await bundle();
    reply.headers({ etag, 'cache-control': 'no-cache', vary: 'accept-encoding' });
    if (namesTag(request.headers['if-none-match'], etag)) return reply.status(304).send();
    reply.headers({
      'content-type': 'text/javascript; charset=utf-8',
      'x-content-type-options': 'nosniff',
    });
    if (/\bgzip\b/.test(request.headers['accept-encoding'] ?? '')) {
      return reply.header('content-encoding', 'gzip').send(gzip);
    }
    return reply.send(Readable.from([gzip]).pipe(createGunzip()));
  });
}

/** The script as it is sent, and a tag that changes when it does. */
async function loadBundle(): Promise<{ gzip: Buffer; etag: string }> {
  const { stdout: gzip } = await promisify(execFile)(
    process.execPath,
    [...nodeArguments([]), bundleProgram],
    {
      encoding: 'buffer',
      env: {},
      maxBuffer: bundleBytesMax,
      timeout: bundleTimeoutMs,
    },
  );
  return { gzip, etag: `W/"${createHash('sha256').update(gzip).digest('base64url')}"` };
}
