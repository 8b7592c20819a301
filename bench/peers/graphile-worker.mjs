/** graphile-worker behind an HTTP server: a request adds a job, which a worker of the same process completes. */
import { createServer } from 'node:http';
import { Logger, makeWorkerUtils, run } from 'graphile-worker';

const connectionString = process.env.DATABASE_URL;
// It would print a line for each task.
const logger = new Logger(() => () => {});
const utils = await makeWorkerUtils({ connectionString, logger });
await utils.migrate();
let completed = 0;
await run({
  connectionString,
  logger,
  concurrency: 24,
  noHandleSignals: true,
  taskList: {
    echo: async () => {
      completed += 1;
    },
  },
});
createServer(async (request, response) => {
  if (request.method === 'GET') return void response.end(String(completed));
  let body = '';
  for await (const chunk of request) body += chunk;
  await utils.addJob('echo', JSON.parse(body));
  response.writeHead(202).end('{}');
}).listen(Number(process.env.PORT), '127.0.0.1');
