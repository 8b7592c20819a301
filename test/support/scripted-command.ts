/**
 * A server of the Model Context Protocol that is a command. Its tool `act` does what its text says: `hold` is never
 * answered; `after` is answered once another call was cancelled, of which the server has spoken and asked; `flood` sends
 * 50,000 messages; anything else is answered with the id of the process.
 */
const program = `
const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n');
const answer = (id, more) =>
  send({ id, result: { content: [], structuredContent: { pid: process.pid, ...more } } });
const inputSchema = { type: 'object', properties: { text: { type: 'string' } } };
const after = [];
const methods = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion, capabilities: { tools: {}, logging: {} }, serverInfo: { name: 'acts', version: '1' },
  }),
  'tools/list': () => ({ tools: [{ name: 'act', description: 'Acts.', inputSchema }] }),
};
const act = (id, text, token) => {
  if (text === 'hold') return send({ method: 'notifications/message', params: { level: 'info', data: 'holding' } });
  if (text === 'after') return void after.push(id);
  if (text !== 'flood') return answer(id, {});
  const progress = { method: 'notifications/progress', params: { progressToken: token, progress: 1 } };
  const line = JSON.stringify({ jsonrpc: '2.0', ...progress }) + '\\n';
  for (let i = 0; i < 50; i++) process.stdout.write(line.repeat(1000));
};
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params = {}, result } = JSON.parse(line);
  if (method === 'tools/call') return act(id, params.arguments.text, params._meta?.progressToken);
  if (method === 'notifications/cancelled') {
    send({ method: 'notifications/message', params: { level: 'info', data: 'late words' } });
    const requestedSchema = { type: 'object', properties: { a: { type: 'boolean' } } };
    return send({ id: 'q', method: 'elicitation/create', params: { message: 'Late?', requestedSchema } });
  }
  if (id === 'q' && method === undefined) return after.splice(0).forEach((one) => answer(one, { answered: result }));
  if (id === undefined) return;
  const known = methods[method];
  if (known) return send({ id, result: known(params) });
  send({ id, error: { code: -32601, message: 'unknown' } });
});
`;

/** Fields of a server, for `POST /admin/mcp-servers`. */
export const actingCommand = { command: process.execPath, args: ['-e', program] };
