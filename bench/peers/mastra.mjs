/** A workflow of Mastra with one step, its storage LibSQL, behind an HTTP server: a request is answered at its end. */
import { createServer } from 'node:http';
import { Mastra } from '@mastra/core/mastra';
import { createStep, createWorkflow } from '@mastra/core/workflows';
import { LibSQLStore } from '@mastra/libsql';
import { z } from 'zod';

const text = z.object({ text: z.string() });
const step = createStep({
  ...{ id: 'echo', inputSchema: text, outputSchema: text },
  execute: async ({ inputData }) => inputData,
});
const echo = createWorkflow({ id: 'echo', inputSchema: text, outputSchema: text })
  .then(step)
  .commit();
const storage = new LibSQLStore({ id: 'bench', url: `file:${process.env.DATA_DIR}/mastra.db` });
const mastra = new Mastra({ workflows: { echo }, storage, logger: false });
let completed = 0;
createServer(async (request, response) => {
  if (request.method === 'GET') return void response.end(String(completed));
  let body = '';
  for await (const chunk of request) body += chunk;
  const run = await mastra.getWorkflow('echo').createRun();
  const { status } = await run.start({ inputData: JSON.parse(body) });
  if (status === 'success') completed += 1;
  response.writeHead(status === 'success' ? 200 : 500).end('{}');
}).listen(Number(process.env.PORT), '127.0.0.1');
