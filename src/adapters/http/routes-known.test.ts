import { describe, expect, test } from 'vitest';
import { createLogger } from '../../kernel/log.ts';
import { Metrics } from './metrics.ts';
import { rememberRoutes } from './routes-known.ts';
import { createServer } from './server.ts';

const limits = {
  perAddress: 10,
  stallMs: 1_000,
  answerMs: 1_000,
  uploadMs: 1_000,
  unreadBytes: 1_000_000,
};

/** As `app.ts` has them: literal paths, parameters, and the skills' path under everything. */
function refusals() {
  const server = createServer(
    createLogger('silent'),
    new Metrics({ version: '1.0.0', roles: 'api' }).http,
    limits,
  );
  const refuse = rememberRoutes(server, new Set(['jobs', 'agents', 'skills']));
  const handler = async () => ({});
  server.get('/health', handler);
  server.get('/api/jobs', handler);
  server.get('/api/jobs/:jobId', handler);
  server.post('/api/jobs/:jobId/cancel', handler);
  server.get('/api/jobs/:jobId/events', handler);
  server.route({ method: ['PUT', 'DELETE'], url: '/api/agents/:agentId', handler });
  server.get('/api/agents/:agentId', handler);
  server.get('/api/skills/:category/:version/:skillName', handler);
  server.post('/api/:category/:version/:skillName', handler);
  server.get('/docs/v1.0', handler);
  return (method: string, url: string) => {
    const { code, extras } = refuse(method, url);
    return code === 'method_not_allowed' ? extras.allow : code;
  };
}

describe('a known path with a wrong method is 405 with Allow', () => {
  test.each([
    ['POST', '/health', 'GET, HEAD'],
    ['DELETE', '/api/jobs', 'GET, HEAD'],
    ['PATCH', '/api/jobs/x', 'GET, HEAD'],
    ['POST', '/api/agents/default', 'DELETE, GET, HEAD, PUT'],
    ['GET', '/api/text/v1.0/summarize', 'POST'],
    ['TRACE', '/api/text/v1.0/summarize', 'POST'],
    ['FOO', '/api/jobs?limit=1&x=/api/agents', 'GET, HEAD'],
    ['GET', '/api/jobs-of-mine/v1.0/run', 'POST'],
  ])('%s %s', (method, url, allow) => {
    expect(refusals()(method, url)).toBe(allow);
  });

  test.each([
    ['GET', '/api/jobs/x/cancel', 'POST'],
    ['POST', '/api/jobs/x/events', 'GET, HEAD'],
    ['PUT', '/api/skills/text/v1.0/summarize', 'GET, HEAD'],
  ])('a path of ours is not taken for a skill: %s %s', (method, url, allow) => {
    expect(refusals()(method, url)).toBe(allow);
  });
});

describe('an unknown path is 404 not_found', () => {
  test.each([
    ['GET', '/'],
    ['GET', ''],
    ['GET', '/healthz'],
    ['GET', '/health/'],
    ['GET', '/Health'],
    ['GET', '/api'],
    ['GET', '/api/'],
    ['PUT', '/api/jobs/'],
    ['PUT', '/api/jobs/x/y'],
    ['POST', '/api/jobs/x/cancel/now'],
    ['POST', '/api/agents/x/y'],
    ['POST', '/api/text/v1.0'],
    ['POST', '/api/text//summarize'],
    ['GET', '/docs/v1x0'],
    ['POST', '/docs/v1x0'],
    ['GET', '/x?/health'],
    ['GET', '/health\n'],
  ])('%s %j', (method, url) => {
    expect(refusals()(method, url)).toBe('not_found');
  });

  test('and so is a known one that its own method did not match', () => {
    expect(refusals()('GET', '/api/jobs/x')).toBe('not_found');
  });

  test('in the same words whatever it was', () => {
    const server = createServer(
      createLogger('silent'),
      new Metrics({ version: '1.0.0', roles: 'api' }).http,
      limits,
    );
    const refuse = rememberRoutes(server, new Set(['jobs']));

    expect(refuse('GET', '/a').message).toBe(refuse('POST', '/b/c').message);
  });

  test('however long it is, without delay', () => {
    const refuse = refusals();

    expect(refuse('POST', `/api/${'jobs/'.repeat(20_000)}`)).toBe('not_found');
    expect(refuse('POST', `/api/${'/'.repeat(100_000)}`)).toBe('not_found');
  });
});
