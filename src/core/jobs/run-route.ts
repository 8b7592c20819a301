/** A route whose requests run a skill. */
import type { FastifyReply, FastifyRequest, FastifySchema } from 'fastify';
import { acceptingWork, callerOf } from '../../adapters/http/authenticate.ts';
import type { Server } from '../../adapters/http/server.ts';
import type { Execution, ExecutionOptions, Target } from './execute.ts';
import { answerAccepted, executionOptions } from './execution-answer.ts';
import type { Jobs } from './jobs.ts';

type Targeted = FastifyRequest & { target: Target };

interface RunRoute {
  readonly path: string;
  readonly schema: FastifySchema;
  readonly findTarget: (request: FastifyRequest) => Target | Promise<Target>;
}

/**
 * `stopping` aborts when the platform stops. `readBody` finds the input and further options in a body that the route's schema
 * validates. Without it the body is the input, and the skill's own schema validates it, after all other checks.
 */
export function runRoute(
  server: Server,
  execution: Execution,
  jobs: Jobs,
  stopping: AbortSignal,
  { path, schema, findTarget }: RunRoute,
  readBody?: (body: unknown) => { readonly input: unknown } & Partial<ExecutionOptions>,
): void {
  if (!server.hasRequestDecorator('target')) server.decorateRequest('target', null);
  const options = {
    config: acceptingWork,
    onRequest: targetHook(findTarget),
    ...(readBody === undefined && { validatorCompiler: () => () => true }),
    schema,
  };
  server.post(path, options, async (request, reply) => {
    const caller = callerOf(request);
    const { target } = request as unknown as Targeted;
    const { input, ...own } = readBody?.(request.body) ?? { input: request.body };
    const given = { ...executionOptions(request, caller), ...own };
    const accepted = await execution.execute(caller, target, input, given);
    return answerAccepted(jobs, stopping, reply, accepted);
  });
}

/** A hook: skill, agent and scope are checked before the body is read (docs/decisions/order-of-checks.md). */
function targetHook(findTarget: RunRoute['findTarget']) {
  return (request: FastifyRequest, _reply: FastifyReply, done: (error?: Error) => void): void => {
    const begin = (found: Target) => {
      (request as Targeted).target = found;
      done();
    };
    try {
      const target = findTarget(request);
      if (target instanceof Promise) target.then(begin, done);
      else begin(target);
    } catch (error) {
      done(error as Error);
    }
  };
}
