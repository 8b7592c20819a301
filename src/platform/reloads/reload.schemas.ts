/** What the API shows of a reload of the skills. */
import { type Static, Type } from 'typebox';
import { Id, Nullable, Timestamp, Words } from '../../adapters/http/schemas.ts';

const Skills = (description: string) => Type.Array(Type.String(), { description });
/** Before the first reload. */
export const noReload = {
  ...{ status: 'none' as const, trigger: null, started_at: null, ended_at: null },
  ...{ added: [], changed: [], removed: [] },
  ...{ reason: null, file: null, line: null, column: null },
  ...{ differences: [], faults: [], processes: [] },
} satisfies Record<string, string | null | []>;

export const SkillReload = Type.Object(
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
    description: 'The last reload that this process led or was notified of.',
    examples: [
      {
        ...noReload,
        status: 'reloaded',
        trigger: 'request',
        started_at: '2026-01-01T00:00:00.000Z',
        ended_at: '2026-01-01T00:00:01.200Z',
        added: ['text/v1.1/shout'],
        processes: [
          { id: '01990a5e-7c1b-7000-8f1e-0c5a7e9b2d11', status: 'reloaded', reason: null },
        ],
      },
    ],
  },
);

/** The last reload, as this process knows it. */
export type ReloadState = Static<typeof SkillReload>;
export type ReloadTrigger = NonNullable<ReloadState['trigger']>;
/** A file of skills that does not load. */
export type SkillFault = ReloadState['faults'][number];

/** How a reload of one process went. */
export type ReloadResult = Omit<ReloadState, 'status' | 'processes'> & {
  status: 'reloaded' | 'refused';
  trigger: ReloadTrigger;
  started_at: string;
  ended_at: string;
};
