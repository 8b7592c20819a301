/** The methods of the extension Tasks; only for clients that declare it in the request. */
import {
  MissingRequiredClientCapabilityError,
  type Server,
  type ServerContext,
  type StandardSchemaV1,
} from '@modelcontextprotocol/server';
import type { Caller } from '../../kernel/caller.ts';
import { type Json, objectOf } from '../../kernel/json.ts';
import { invalidParams, protocolErrorOf } from './protocol-errors.ts';
import { type Tasks, tasksExtension } from './tasks.ts';

/** What a client declares in its request that it can do. */
export function capabilitiesOf({ mcpReq }: ServerContext): Json | null {
  return objectOf(objectOf(mcpReq.envelope)?.['io.modelcontextprotocol/clientCapabilities']);
}

export function declaresTasks(ctx: ServerContext): boolean {
  return objectOf(objectOf(capabilitiesOf(ctx)?.['extensions'])?.[tasksExtension]) !== null;
}

/** Throws -32021 for a client that has not declared the extension in its request. */
export function requireTasks(ctx: ServerContext): void {
  if (declaresTasks(ctx)) return;
  const requiredCapabilities = { extensions: { [tasksExtension]: {} } };
  throw new MissingRequiredClientCapabilityError({ requiredCapabilities });
}

/** Each method checks its own parameters. */
const anyParams: StandardSchemaV1<unknown, Json> = {
  '~standard': {
    version: 1,
    vendor: 'skillwright',
    validate: (value: unknown) => ({ value: objectOf(value) ?? {} }),
  },
};

type Verb = (caller: Caller, taskId: string, params: Json, ctx: ServerContext) => Promise<object>;

export function addTaskMethods(server: Server, tasks: Tasks, caller: Caller): void {
  const add = (method: string, verb: Verb) =>
    server.setRequestHandler(method, { params: anyParams }, async (params, ctx) => {
      requireTasks(ctx);
      const { taskId } = params;
      if (typeof taskId !== 'string') throw invalidParams('taskId must be a text');
      try {
        return { ...(await verb(caller, taskId, params, ctx)) };
      } catch (error) {
        throw protocolErrorOf(error);
      }
    });
  add('tasks/get', (by, taskId, _params, ctx) => tasks.get(by, capabilitiesOf(ctx), taskId));
  add('tasks/update', async (by, taskId, { inputResponses }, ctx) => {
    const answers = objectOf(inputResponses) ?? ctx.mcpReq.inputResponses;
    if (!answers) throw invalidParams('inputResponses must be an object');
    await tasks.update(by, taskId, answers);
    return {};
  });
  add('tasks/cancel', async (by, taskId) => {
    await tasks.cancel(by, taskId);
    return {};
  });
}
