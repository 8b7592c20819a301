/** `/admin/skills/reload`: loads the skills again, and shows the last reload. */
import { adminRefusals } from '../../adapters/http/refusals.ts';
import type { Server } from '../../adapters/http/server.ts';
import { PlatformError } from '../../kernel/errors.ts';
import { withDeadline } from '../../kernel/with-deadline.ts';
import { type ReloadState, SkillReload } from './reload.schemas.ts';
import type { Reloads } from './reload-turns.ts';

/** Milliseconds after which the answer no longer waits for the end of the reload. */
const answerMs = 20_000;

const common = { tags: ['Skills'], security: [{ adminBearer: [] }, { adminHeader: [] }] };

export function reloadRoutes(server: Server, reloads: Reloads): void {
  server.get(
    '/admin/skills/reload',
    {
      schema: {
        ...common,
        operationId: 'getSkillReload',
        summary: 'Get how the last reload of the skills went',
        response: { 200: SkillReload, ...adminRefusals() },
      },
    },
    async () => reloads.last(),
  );
  server.post(
    '/admin/skills/reload',
    {
      schema: {
        ...common,
        operationId: 'reloadSkills',
        summary: 'Load the skills again',
        description:
          'New runs use the new skills, and runs that have begun end with the old ones. A fault ' +
          'leaves all as it was and is a conflict. In a cluster one process follows the other.',
        response: { 200: SkillReload, 202: SkillReload, ...adminRefusals('conflict') },
      },
    },
    async (_request, reply) => {
      const done = await withDeadline(reloads.reloadAll('request'), answerMs);
      if (done === undefined) return reply.status(202).send(reloads.last());
      if (done.status === 'refused') throw asConflict(done);
      return reply.status(200).send(done);
    },
  );
}

function asConflict({ reason, differences }: ReloadState): PlatformError {
  return new PlatformError('conflict', `The skills were not reloaded: ${reason}`, {
    details: differences.map(({ skill, difference }) => ({ field: skill, issue: difference })),
  });
}
