/** `/admin/skills/reload`: loads the skills again, and tells how the last reload went. */
import { Type } from 'typebox';
import { adminRefusals } from '../http/refusals.ts';
import { Id, Nullable, Timestamp, Words } from '../http/schemas.ts';
import type { Server } from '../http/server.ts';
import { PlatformError } from '../kernel/errors.ts';
import { withDeadline } from '../kernel/with-deadline.ts';
import type { ReloadState, Reloads } from './reload-turns.ts';

/** Milliseconds after which the answer no longer waits for the end of the reload. */
const answerMs = 20_000;

const Skills = (description: string) => Type.Array(Type.String(), { description });
const SkillReload = Type.Object(
  {
    status: {
      ...Words(['none', 'running', 'reloaded', 'refused'] as const),
      description: 'none: there was no reload since the start.',
    },
    trigger: {
      ...Nullable(Words(['request', 'signal', 'watch'] as const)),
      description:
        'request: this endpoint; signal: SIGHUP; watch: a saved file of skillwright dev.',
    },
    started_at: Nullable(Timestamp),
    ended_at: Nullable(Timestamp),
    added: Skills('Skills that are new, as category/version/name.'),
    changed: Skills('Skills whose definition differs, or the code of which, with what it imports.'),
    removed: Skills('Skills that are gone.'),
    reason: { ...Nullable(Type.String()), description: 'Why it was refused.' },
    file: { ...Nullable(Type.String()), description: 'The file at fault, where it is known.' },
    line: { ...Nullable(Type.Integer()), description: 'The line at fault, where it is known.' },
    column: { ...Nullable(Type.Integer()), description: 'The column at fault, where it is known.' },
    differences: Type.Array(Type.Object({ skill: Type.String(), difference: Type.String() }), {
      description: 'Changes of a version that its callers would notice.',
    }),
    faults: Type.Array(
      Type.Object({
        file: Type.String(),
        line: Nullable(Type.Integer()),
        column: Nullable(Type.Integer()),
        reason: Type.String(),
        serving: {
          ...Nullable(Type.String()),
          description: 'The skill whose last version that loaded is in use; null if there is none.',
        },
        failing: {
          ...Nullable(Type.String()),
          description:
            'The skill whose runs fail until the file loads, because its last version does not load any ' +
            'more either, such as after a package was removed; null if there is none.',
        },
      }),
      {
        description:
          'Files of skills that do not load: a SKILL.md that is left out, and any file under ' +
          'skillwright dev. Elsewhere a module that does not load is why a reload is refused.',
      },
    ),
    processes: Type.Array(
      Type.Object({
        id: Id,
        status: Words(['reloaded', 'refused'] as const),
        reason: Nullable(Type.String()),
      }),
      { description: 'What became of each process, in the order of their turns.' },
    ),
  },
  {
    title: 'SkillReload',
    description: 'The last reload that this process led or heard of.',
    examples: [
      {
        status: 'reloaded',
        trigger: 'request',
        started_at: '2026-01-01T00:00:00.000Z',
        ended_at: '2026-01-01T00:00:01.200Z',
        added: ['text/v1.1/shout'],
        changed: [],
        removed: [],
        reason: null,
        file: null,
        line: null,
        column: null,
        differences: [],
        faults: [],
        processes: [
          { id: '01990a5e-7c1b-7000-8f1e-0c5a7e9b2d11', status: 'reloaded', reason: null },
        ],
      },
    ],
  },
);

const common = { tags: ['Skills'], security: [{ adminBearer: [] }, { adminHeader: [] }] };

export function reloadRoutes(server: Server, { reloads }: { reloads: Reloads }): void {
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
    async () => stateView(reloads.last()),
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
      if (done === undefined) return reply.status(202).send(stateView(reloads.last()));
      if (done.status === 'refused') throw asConflict(done);
      return reply.status(200).send(stateView(done));
    },
  );
}

function asConflict({ reason, differences }: ReloadState): PlatformError {
  return new PlatformError('conflict', `The skills were not reloaded: ${reason}`, {
    details: differences.map(({ skill, difference }) => ({ field: skill, issue: difference })),
  });
}

function stateView(state: ReloadState) {
  const { added, changed, removed, differences, faults, processes, ...rest } = state;
  return {
    ...rest,
    added: [...added],
    changed: [...changed],
    removed: [...removed],
    differences: differences.map((one) => ({ ...one })),
    faults: faults.map((one) => ({ ...one })),
    processes: processes.map((one) => ({ ...one })),
  };
}
