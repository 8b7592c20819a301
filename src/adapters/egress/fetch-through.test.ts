import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { parseAllowList } from './allow-list.ts';
import { GuardedFetch } from './fetch-through.ts';

test('other work has a turn between the chunks of a long answer', async () => {
  const server = createServer((_request, response) => response.end(Buffer.alloc(2_000_000)));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const guarded = new GuardedFetch({
    allowed: parseAllowList('127.0.0.0/8'),
    schemes: ['http:'],
    maxBytes: 4_000_000,
  });
  onTestFinished(() => guarded.close());
  const { port } = server.address() as AddressInfo;
  const { body } = await guarded.fetch(`http://127.0.0.1:${port}/`);
  let turns = 0;
  let isReading = true;
  const count = () => {
    turns += 1;
    if (isReading) setImmediate(count);
  };
  setImmediate(count);
  let chunks = 0;
  for await (const _chunk of body ?? []) chunks += 1;
  isReading = false;
  expect(turns).toBeGreaterThanOrEqual(chunks);
});
