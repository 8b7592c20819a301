import type { RequestListener } from 'node:http';
import net from 'node:net';
import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import zlib from 'node:zlib';
import { afterEach, describe, expect, test } from 'vitest';
import {
  authority,
  type Receiver,
  receiveHttp,
  receiveHttps,
  started,
} from '../../../test/fixtures/receiver/receiver.ts';
import { parseAllowList } from './allow-list.ts';
import { EgressError } from './egress-error.ts';
import { Egress, type EgressOptions, type EgressRequest } from './guarded-fetch.ts';
import type { Resolve } from './system-resolver.ts';

const loopback = parseAllowList('127.0.0.0/8');
const limits = { maxBytes: 100_000, timeoutMs: 5_000 };
const closers: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

/** A client that may reach 127.0.0.0/8 by default. */
function egress(options: Partial<EgressOptions> = {}): Egress {
  const opened = new Egress({ allowed: loopback, schemes: ['https:', 'http:'], ...options });
  closers.push(() => opened.close());
  return opened;
}

async function receiver(handler: RequestListener): Promise<Receiver> {
  const made = await receiveHttp(handler);
  closers.push(made.close);
  return made;
}

async function secureReceiver(handler: RequestListener, options = {}): Promise<Receiver> {
  const made = await receiveHttps(handler, options);
  closers.push(made.close);
  return made;
}

/** A server that answers every connection with these bytes, or leaves it hanging. */
async function rawReceiver(onConnection: (socket: net.Socket) => void): Promise<Receiver> {
  const made = await started(net.createServer(onConnection), 'http');
  closers.push(made.close);
  return made;
}

async function failure(request: Promise<unknown>): Promise<EgressError> {
  const error = await request.then(
    () => new Error('the request did not fail'),
    (reason: unknown) => reason,
  );
  if (!(error instanceof EgressError)) throw error;
  return error;
}

const answers =
  (...addresses: string[]): Resolve =>
  async () =>
    addresses;

describe('a request is sent and its answer read', () => {
  test('method, headers and body arrive, status, headers and body come back', async () => {
    const { origin } = await receiver((request, response) => {
      const chunks: Buffer[] = [];
      request
        .on('data', (chunk) => chunks.push(chunk))
        .on('end', () => {
          const seen = [request.method, request.url, request.headers['x-a'], `${chunks}`];
          response.writeHead(418, { 'x-b': ['1', '2'] }).end(JSON.stringify(seen));
        });
    });

    const answer = await egress().request(`${origin}/path?q=1#part`, {
      ...limits,
      method: 'PUT',
      headers: { 'X-A': 'yes' },
      body: 'grüße',
    });

    expect(answer.status).toBe(418);
    expect(answer.headers['x-b']).toEqual(['1', '2']);
    expect(JSON.parse(`${answer.body}`)).toEqual(['PUT', '/path?q=1', 'yes', 'grüße']);
    expect(answer.truncated).toBe(false);
  });

  test('https is verified against the authorities given', async () => {
    const { port } = await secureReceiver((_request, response) => response.end('secure'));
    const opened = egress({ ca: authority, resolve: answers('127.0.0.1') });

    const named = await opened.request(`https://a.receiver.test:${port}/`, limits);
    const literal = await opened.request(`https://127.0.0.1:${port}/`, limits);

    expect(`${named.body} ${literal.body}`).toBe('secure secure');
  });

  test('a name with several addresses is reached at the one that listens', async () => {
    const { port } = await receiver((_request, response) => response.end('here'));
    const opened = egress({ resolve: answers('127.0.0.77', '127.0.0.1') });

    const answer = await opened.request(`http://name.test:${port}/`, limits);

    expect(`${answer.body}`).toBe('here');
  });

  test('every request has a connection of its own', async () => {
    const { origin, connections } = await receiver((_request, response) => response.end('ok'));
    const opened = egress();

    await opened.request(origin, limits);
    await opened.request(origin, limits);

    expect(connections()).toBe(2);
  });
});

describe('what is refused is never connected to', () => {
  test.each([
    (port: number) => `http://127.0.0.1:${port}/`,
    (port: number) => `http://0x7f.1:${port}/`,
    (port: number) => `http://2130706433:${port}/`,
    (port: number) => `http://0:${port}/`,
    (port: number) => `http://[::ffff:7f00:1]:${port}/`,
    (port: number) => `http://localhost:${port}/`,
    (port: number) => `https://127.0.0.1:${port}/`,
  ])('a literal or local name (%o)', async (url) => {
    const { port, connections } = await receiver((_request, response) => response.end());

    const error = await failure(egress({ allowed: [] }).request(url(port), limits));

    expect(error).toMatchObject({ code: 'blocked_address', sent: false, retryable: false });
    expect(connections()).toBe(0);
  });

  test.each(['http', 'https'])('a name that resolves to loopback (%s)', async (scheme) => {
    const { port, connections } = await receiver((_request, response) => response.end());
    const opened = egress({ allowed: [], resolve: answers('127.0.0.1') });

    const error = await failure(opened.request(`${scheme}://rebind.test:${port}/`, limits));

    expect(error).toMatchObject({ code: 'blocked_address', sent: false });
    expect(error.message).not.toContain('127.0.0.1');
    expect(connections()).toBe(0);
  });

  test('a name with one public and one private address', async () => {
    const { port, connections } = await receiver((_request, response) => response.end());
    const opened = egress({
      allowed: [],
      resolve: answers('93.184.216.34', '127.0.0.1'),
    });

    const error = await failure(opened.request(`http://both.test:${port}/`, limits));

    expect(error.code).toBe('blocked_address');
    expect(connections()).toBe(0);
  });

  test('a name that was harmless the first time and leads inside the second', async () => {
    const { port, connections } = await receiver((_request, response) => response.end('fine'));
    const turns = [['127.0.0.1'], ['10.0.0.1']];
    const opened = egress({ resolve: async () => turns.shift() ?? [] });

    const first = await opened.request(`http://rebind.test:${port}/`, limits);
    const error = await failure(opened.request(`http://rebind.test:${port}/`, limits));

    expect(`${first.body}`).toBe('fine');
    expect(error.code).toBe('blocked_address');
    expect(connections()).toBe(1);
  });

  test('an answer of the resolver that is no address', async () => {
    const opened = egress({ resolve: answers('127.1') });

    expect((await failure(opened.request('http://odd.test/', limits))).code).toBe(
      'blocked_address',
    );
  });

  test('a store port of an address that the operator did not list', async () => {
    const opened = egress({ resolve: answers('8.8.8.8') });

    const error = await failure(opened.request('http://name.test:6379/', limits));

    expect(error).toMatchObject({ code: 'blocked_port', sent: false });
  });

  test('a url or a header that cannot be', async () => {
    const { origin, connections } = await receiver((_request, response) => response.end());
    const opened = egress();
    const host = { host: 'other.test' };
    const split = { 'x-a': 'b\r\nc: d' };

    const errors = await Promise.all([
      failure(opened.request('ftp://example.com/', limits)),
      failure(opened.request(origin, { ...limits, headers: host })),
      failure(opened.request(origin, { ...limits, headers: split })),
      failure(opened.request(origin, { ...limits, method: 'GET / HTTP/1.1' })),
    ]);

    expect(errors.map(({ code, sent }) => [code, sent])).toEqual([
      ['invalid_url', false],
      ['invalid_request', false],
      ['invalid_request', false],
      ['invalid_request', false],
    ]);
    expect(connections()).toBe(0);
  });
});

describe('TLS is always verified', () => {
  test('a certificate that no known authority signed is refused', async () => {
    const { origin } = await secureReceiver((_request, response) => response.end());

    const error = await failure(egress().request(origin, limits));

    expect(error).toMatchObject({ code: 'tls', sent: false });
    expect(error.message).toContain('127.0.0.1');
  });

  test('a certificate for another name is refused', async () => {
    const { port } = await secureReceiver((_request, response) => response.end());
    const opened = egress({ ca: authority, resolve: answers('127.0.0.1') });

    const error = await failure(opened.request(`https://other.test:${port}/`, limits));

    expect(error.code).toBe('tls');
  });

  test('TLS 1.1 is refused', async () => {
    const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' };
    const { origin } = await secureReceiver((_request, response) => response.end(), old);

    const error = await failure(egress({ ca: authority }).request(origin, limits));

    expect(error.code).toBe('tls');
  });

  test('an environment that switches verification off does not', async () => {
    const { origin } = await secureReceiver((_request, response) => response.end());
    process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0';
    closers.push(async () => {
      delete process.env['NODE_TLS_REJECT_UNAUTHORIZED'];
    });

    expect((await failure(egress().request(origin, limits))).code).toBe('tls');
  });

  test('a server that speaks plain HTTP is a TLS error', async () => {
    const { port } = await receiver((_request, response) => response.end());

    const error = await failure(egress().request(`https://127.0.0.1:${port}/`, limits));

    expect(error.code).toBe('tls');
  });
});

describe('redirects', () => {
  const redirecting =
    (status: number, target: () => string, last: RequestListener): RequestListener =>
    (request, response) => {
      if (request.url === '/start') response.writeHead(status, { location: target() }).end('moved');
      else last(request, response);
    };

  test('are returned as they are when none are to be followed', async () => {
    const { origin } = await receiver(
      redirecting(
        302,
        () => '/next',
        () => undefined,
      ),
    );

    const answer = await egress().request(`${origin}/start`, limits);

    expect(answer).toMatchObject({ status: 302, url: `${origin}/start` });
    expect(`${answer.body}`).toBe('moved');
  });

  test('are followed, also relative ones, and the answer names the last url', async () => {
    const { origin } = await receiver(
      redirecting(
        301,
        () => 'next?x=1',
        (_request, response) => response.end('arrived'),
      ),
    );

    const answer = await egress().request(`${origin}/start`, { ...limits, redirects: 5 });

    expect(answer).toMatchObject({ status: 200, url: `${origin}/next?x=1` });
  });

  test.each([
    [301, 'POST', 'GET ""'],
    [302, 'POST', 'GET ""'],
    [303, 'PUT', 'GET ""'],
    [307, 'POST', 'POST "body"'],
    [308, 'PUT', 'PUT "body"'],
  ])('%i turns %s into %s', async (status, method, seen) => {
    const { origin } = await receiver(
      redirecting(
        status,
        () => '/next',
        (request, response) => {
          let body = '';
          request.on('data', (chunk) => {
            body += chunk;
          });
          request.on('end', () => response.end(`${request.method} "${body}"`));
        },
      ),
    );

    const answer = await egress().request(`${origin}/start`, {
      ...limits,
      method,
      body: 'body',
      redirects: 1,
    });

    expect(`${answer.body}`).toBe(seen);
  });

  test.each([
    () => 'http://10.0.0.1/',
    () => 'http://[::1]/',
    () => 'http://169.254.169.254/latest/meta-data/',
    () => 'http://inside.test/',
  ])('to a refused address (%o) are not followed', async (target) => {
    const { port } = await receiver(redirecting(302, target, () => undefined));
    const inside: Resolve = async (name) => [name === 'inside.test' ? '10.0.0.1' : '127.0.0.1'];

    const error = await failure(
      egress({ resolve: inside }).request(`http://outside.test:${port}/start`, {
        ...limits,
        redirects: 5,
      }),
    );

    expect(error).toMatchObject({ code: 'blocked_address', sent: true });
  });

  test('to loopback reach no listener', async () => {
    const target = await receiver((_request, response) => response.end('secret'));
    const { port } = await receiver(
      redirecting(
        302,
        () => `http://127.0.0.2:${target.port}/`,
        () => undefined,
      ),
    );
    const opened = egress({ allowed: parseAllowList('127.0.0.1') });

    const error = await failure(
      opened.request(`http://127.0.0.1:${port}/start`, { ...limits, redirects: 5 }),
    );

    expect(error.code).toBe('blocked_address');
    expect(target.connections()).toBe(0);
  });

  test.each(['ftp://example.com/', 'http://user:pw@127.0.0.1/', 'file:///etc/passwd', 'http://'])(
    'to %s are not followed',
    async (target) => {
      const { origin } = await receiver(
        redirecting(
          302,
          () => target,
          () => undefined,
        ),
      );

      const error = await failure(egress().request(`${origin}/start`, { ...limits, redirects: 5 }));

      expect(error.code).toMatch(/^(invalid_url|protocol)$/);
    },
  );

  test('end after the limit', async () => {
    const { origin, connections } = await receiver((_request, response) =>
      response.writeHead(302, { location: '/again' }).end(),
    );

    const error = await failure(egress().request(origin, { ...limits, redirects: 99 }));

    expect(error.code).toBe('too_many_redirects');
    expect(connections()).toBe(6);
  });

  test('take credentials along within an origin, and nothing that could be one beyond', async () => {
    const echo: RequestListener = (request, response) =>
      response.end(JSON.stringify(request.headers));
    const other = await receiver(echo);
    const { origin } = await receiver((request, response) => {
      if (request.url === '/same') response.writeHead(307, { location: '/echo' }).end();
      else if (request.url === '/other') {
        response.writeHead(307, { location: other.origin }).end();
      } else echo(request, response);
    });
    const headers = {
      Authorization: 'Bearer secret',
      Cookie: 'session=secret',
      'X-Api-Key': 'secret',
      Accept: 'text/html',
    };
    const asked = { ...limits, headers, redirects: 1 };

    const same = await egress().request(`${origin}/same`, asked);
    const beyond = await egress().request(`${origin}/other`, asked);

    expect(`${same.body}`.match(/secret/g)).toHaveLength(3);
    expect(`${beyond.body}`).not.toContain('secret');
    expect(JSON.parse(`${beyond.body}`)).toMatchObject({ accept: 'text/html' });
  });
});

describe('an answer too large', () => {
  const big: RequestListener = (_request, response) => response.end('x'.repeat(1_000_000));

  test('is an error', async () => {
    const { origin } = await receiver(big);

    const error = await failure(egress().request(origin, limits));

    expect(error).toMatchObject({ code: 'too_large', status: 200, sent: true });
  });

  test('or is cut, as asked', async () => {
    const { origin } = await receiver(big);

    const answer = await egress().request(origin, { ...limits, overflow: 'truncate' });

    expect(answer.body).toHaveLength(limits.maxBytes);
    expect(answer.truncated).toBe(true);
  });

  test('of exactly the size allowed is complete', async () => {
    const { origin } = await receiver((_request, response) => response.end('12345'));

    const answer = await egress().request(origin, { ...limits, maxBytes: 5 });

    expect([`${answer.body}`, answer.truncated]).toEqual(['12345', false]);
  });

  test('in its headers is an error', async () => {
    const { origin } = await receiver((_request, response) =>
      response.writeHead(200, { 'x-long': 'x'.repeat(20_000) }).end(),
    );

    expect((await failure(egress().request(origin, limits))).code).toBe('too_large');
  });

  test('without end is not waited for', async () => {
    const { origin } = await receiver((_request, response) => {
      const write = () => {
        while (response.write('x'.repeat(10_000)));
      };
      response.on('drain', write);
      write();
    });

    const answer = await egress().request(origin, { ...limits, overflow: 'truncate' });

    expect(answer.truncated).toBe(true);
  });
});

describe('a compressed answer', () => {
  const text = 'compressed '.repeat(100);
  const sending =
    (encoding: string, body: Buffer): RequestListener =>
    (_request, response) =>
      response.writeHead(200, { 'content-encoding': encoding }).end(body);

  test.each([
    ['gzip', zlib.gzipSync(text)],
    ['x-gzip', zlib.gzipSync(text)],
    ['GZIP', zlib.gzipSync(text)],
    ['deflate', zlib.deflateSync(text)],
    ['deflate', zlib.deflateRawSync(text)],
    ['br', zlib.brotliCompressSync(text)],
    ['identity', Buffer.from(text)],
    ['gzip', zlib.gzipSync(text).subarray(0, -8)],
  ])('with %s is unpacked', async (encoding, body) => {
    const { origin } = await receiver(sending(encoding, body));

    const answer = await egress().request(origin, limits);

    expect(`${answer.body}`).toBe(text);
  });

  test.each(['gzip', 'deflate', 'br'])('with %s that is empty is empty', async (encoding) => {
    const { origin } = await receiver(sending(encoding, Buffer.alloc(0)));

    expect((await egress().request(origin, limits)).body).toHaveLength(0);
    expect((await egress().request(origin, { ...limits, method: 'HEAD' })).body).toHaveLength(0);
  });

  test('is left as it is, and not asked for, when that is wished', async () => {
    const body = zlib.gzipSync(text);
    let asked: string | string[] | undefined = 'nothing seen';
    const { origin } = await receiver((request, response) => {
      asked = request.headers['accept-encoding'];
      sending('gzip', body)(request, response);
    });

    const answer = await egress().request(origin, { ...limits, decompress: false });

    expect(answer.body.equals(body)).toBe(true);
    expect(asked).toBeUndefined();
  });

  test.each([
    ['gzip', zlib.gzipSync(Buffer.alloc(50_000_000))],
    ['br', zlib.brotliCompressSync(Buffer.alloc(50_000_000))],
  ])('that is a bomb (%s) is cut at the limit', async (encoding, bomb) => {
    const { origin } = await receiver(sending(encoding, bomb));

    const cut = await egress().request(origin, { ...limits, overflow: 'truncate' });
    const error = await failure(egress().request(origin, limits));

    expect([cut.body.length, cut.truncated]).toEqual([limits.maxBytes, true]);
    expect(error.code).toBe('too_large');
  });

  test('that unpacks to nothing without end is cut too', async () => {
    const header = Buffer.from([0x1f, 0x8b, 8, 0x08, 0, 0, 0, 0, 0, 3]);
    const { origin } = await receiver((_request, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' });
      response.write(header);
      const write = () => {
        while (response.write(Buffer.alloc(10_000, 'n')));
      };
      response.on('drain', write);
      write();
    });

    expect((await failure(egress().request(origin, limits))).code).toBe('too_large');
  });

  test.each(['gzip, gzip', 'zstd', 'made-up'])('with %s is refused', async (encoding) => {
    const { origin } = await receiver(sending(encoding, zlib.gzipSync(zlib.gzipSync(text))));

    expect((await failure(egress().request(origin, limits))).code).toBe('protocol');
  });

  test.each(['gzip', 'deflate', 'br'])('that is not %s is refused', async (encoding) => {
    const { origin } = await receiver(sending(encoding, Buffer.from('hello, plain text')));

    const error = await failure(egress().request(origin, limits));

    expect(error).toMatchObject({ code: 'protocol', status: 200 });
  });
});

describe('a request ends by its deadline', () => {
  const soon = { ...limits, timeoutMs: 150 };

  test('when the server never answers', async () => {
    const { origin } = await receiver(() => undefined);

    const error = await failure(egress().request(origin, soon));

    expect(error).toMatchObject({ code: 'timeout', sent: true, retryable: true });
    expect(error.message).toContain('0.15 s');
  });

  test('when the body drips', async () => {
    const { origin } = await receiver((_request, response) => {
      response.writeHead(200);
      const drip = setInterval(() => response.write('.'), 20);
      response.on('close', () => clearInterval(drip));
    });

    const error = await failure(egress().request(origin, soon));

    expect(error).toMatchObject({ code: 'timeout', status: 200 });
  });

  test('when the compressed body stops in the middle', async () => {
    const { origin } = await receiver((_request, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' });
      response.write(zlib.gzipSync('x'.repeat(1000)).subarray(0, 12));
    });

    expect((await failure(egress().request(origin, soon))).code).toBe('timeout');
  });

  test('when the name is never resolved', async () => {
    const resolve: Resolve = () => new Promise(() => undefined);

    const total = await failure(egress({ resolve }).request('http://slow.test/', soon));
    const connecting = await failure(
      egress({ resolve, connectTimeoutMs: 50 }).request('http://slow.test/', limits),
    );

    expect([total.code, connecting.code]).toEqual(['timeout', 'timeout']);
    expect(connecting.sent).toBe(false);
  });

  test('when the name is resolved too late, without a connection any more', async () => {
    const { port, connections } = await receiver((_request, response) => response.end());
    const late = Promise.withResolvers<string[]>();
    const opened = egress({ resolve: () => late.promise, connectTimeoutMs: 50 });

    const error = await failure(opened.request(`http://slow.test:${port}/`, limits));
    late.resolve(['127.0.0.1']);
    await egress().request(`http://127.0.0.1:${port}/`, limits);

    expect(error.code).toBe('timeout');
    expect(connections()).toBe(1);
  });

  test('when the TLS handshake stalls', async () => {
    const { port } = await rawReceiver(() => undefined);

    const error = await failure(
      egress({ connectTimeoutMs: 100 }).request(`https://127.0.0.1:${port}/`, limits),
    );

    expect(error).toMatchObject({ code: 'timeout', sent: false });
  });
});

describe('interim responses are skipped, though no request asks for them', () => {
  test.each([
    ['HTTP', receiver],
    ['HTTPS', secureReceiver],
  ])('over %s', async (_what, receive) => {
    const { port } = await receive((_request, response) => {
      response.writeContinue();
      response.writeProcessing();
      response.writeEarlyHints({ link: '</style.css>; rel=preload' });
      response.writeContinue();
      response.writeHead(201, { 'x-last': 'yes' }).end('taken');
    });
    const scheme = receive === receiver ? 'http' : 'https';
    const opened = egress({ ca: authority });

    const answer = await opened.request(`${scheme}://127.0.0.1:${port}/`, limits);

    expect(answer).toMatchObject({ status: 201, headers: { 'x-last': 'yes' } });
    expect(answer.headers).not.toHaveProperty('link');
    expect(answer.body.toString()).toBe('taken');
  });

  test('whatever pieces they come in, and a body that looks like one stays as it is', async () => {
    const body = 'HTTP/1.1 100 Continue\r\n\r\n';
    const interim = 'HTTP/1.1 100 Continue\r\nx-a: b\r\n\r\n\r\nHTTP/1.1 100 \r\n\r\n';
    const text = `${interim}HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
    const { origin } = await rawReceiver((socket) => {
      socket.setNoDelay().once('data', async () => {
        for (const byte of text) {
          socket.write(byte);
          await yieldToEventLoop();
        }
      });
    });

    const answer = await egress().request(origin, limits);

    expect(answer.status).toBe(200);
    expect(answer.body.toString()).toBe(body);
  });

  test('in each answer of a connection that is used again', async () => {
    const { origin, connections } = await receiver((request, response) => {
      response.writeContinue();
      request.resume().on('end', () => response.end('taken'));
    });
    const opened = egress({ keepAlive: { idleMs: 3_000, connectionsMax: 1 } });

    for (const body of ['first', 'second', 'third']) {
      expect((await opened.request(origin, { ...limits, method: 'POST', body })).status).toBe(200);
    }

    expect(connections()).toBe(1);
  });

  test('but not without an end', async () => {
    let sent = 0;
    const { origin } = await rawReceiver((socket) => {
      const more = () => {
        sent += 1;
        if (socket.write('HTTP/1.1 103 Early Hints\r\n\r\n') && !socket.destroyed)
          setImmediate(more);
        else socket.once('drain', more);
      };
      socket.once('data', more);
    });

    const error = await failure(egress().request(origin, limits));

    expect(error).toMatchObject({ code: 'connection', sent: true, status: null });
    expect(String((error.cause as Error).message)).toContain('more than 20 interim responses');
    expect(sent).toBeGreaterThan(20);
  });
});

describe('other failures have their own codes', () => {
  test('no server listens', async () => {
    const { origin, close } = await receiver(() => undefined);
    await close();

    const error = await failure(egress().request(origin, limits));

    expect(error).toMatchObject({ code: 'refused', sent: false, retryable: true });
  });

  test('none of several addresses listens', async () => {
    const { port, close } = await receiver(() => undefined);
    await close();
    const opened = egress({ resolve: answers('127.0.0.1', '127.0.0.2') });

    expect((await failure(opened.request(`http://two.test:${port}/`, limits))).code).toBe(
      'refused',
    );
  });

  test('the name does not exist', async () => {
    const unknown: Resolve = () => Promise.reject(new Error('ENOTFOUND'));

    const errors = await Promise.all([
      failure(egress({ resolve: unknown }).request('http://name.test/', limits)),
      failure(egress({ resolve: answers() }).request('http://name.test/', limits)),
      failure(egress().request('http://name.invalid/', limits)),
    ]);

    expect(errors.map(({ code, sent }) => [code, sent])).toEqual(Array(3).fill(['dns', false]));
  });

  test('the connection breaks before the answer', async () => {
    const { origin } = await receiver((request) => request.socket.destroy());

    const error = await failure(egress().request(origin, limits));

    expect(error).toMatchObject({ code: 'connection', sent: true, status: null });
  });

  test('the connection breaks in the body, after a status that counts', async () => {
    const { origin } = await receiver((request, response) => {
      response.writeHead(204 - 4, { 'content-length': '100' });
      response.write('half', () => request.socket.destroy());
    });

    const error = await failure(egress().request(origin, limits));

    expect(error).toMatchObject({ sent: true, status: 200 });
  });

  test('the answer is not HTTP', async () => {
    const { origin } = await rawReceiver((socket) => socket.end('SSH-2.0-OpenSSH_9.2\r\n\r\n'));

    expect((await failure(egress().request(origin, limits))).code).toBe('protocol');
  });

  test('the caller gives up, before or after it has begun', async () => {
    const { origin, connections } = await receiver(() => undefined);
    const before = AbortSignal.abort();
    const during = new AbortController();
    const opened = egress();

    const early = await failure(opened.request(origin, { ...limits, signal: before }));
    expect(connections()).toBe(0);
    const request = failure(opened.request(origin, { ...limits, signal: during.signal }));
    during.abort();

    expect([early.code, (await request).code]).toEqual(['aborted', 'aborted']);
  });

  test('it is closed while requests are under way', async () => {
    const arrived = Promise.withResolvers<void>();
    const { origin } = await receiver(() => arrived.resolve());
    const opened = new Egress({ allowed: loopback, schemes: ['http:'] });

    const request = failure(opened.request(origin, limits));
    await arrived.promise;
    await opened.close();

    expect((await request).code).toBe('connection');
  });
});

test('a request that ends early leaves no connection behind', async () => {
  const open = new Set<net.Socket>();
  const { origin } = await receiver((request, response) => {
    open.add(request.socket);
    request.socket.once('close', () => open.delete(request.socket));
    response.write('x'.repeat(1_000_000));
  });
  const opened = egress();
  const asked: EgressRequest = { ...limits, overflow: 'truncate', maxBytes: 10 };

  await Promise.all(Array.from({ length: 20 }, () => opened.request(origin, asked)));

  await expect.poll(() => open.size).toBe(0);
});
