import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { startPlatform } from '../support/platform.ts';
import { openRaw } from '../support/raw-http.ts';
import { waitFor } from '../support/wait-for.ts';

const health = 'GET /health HTTP/1.1\r\nHost: x\r\n\r\n';

test('requests that are on their way as the platform begins to stop are answered, and their connections closed', async () => {
  const platform = await startPlatform();
  const http = platform.app.server.server;
  const connections = promisify(http.getConnections.bind(http));
  const kept = openRaw(platform.url);
  kept.send(health);
  await kept.answers(1);
  const fresh = openRaw(platform.url);
  await waitFor(async () => (await connections()) === 2, { describe: 'both are connected' });

  const stopped = platform.stop();
  kept.send(health);
  fresh.send(health);

  for (const answers of [await kept.closed(), await fresh.closed()]) {
    const last = answers.at(-1);
    expect({ status: last?.status, connection: last?.headers['connection'] }).toEqual({
      status: 200,
      connection: 'close',
    });
  }
  await stopped;
});
