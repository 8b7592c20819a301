/** What waits, and what holds it. */
import { Type } from 'typebox';
import { Id, Nullable, Timestamp, Words } from '../../adapters/http/schemas.ts';
import { groupsMax } from '../../core/jobs/queued-jobs/queued-jobs.ts';
import { limitScopes } from '../../core/skills/limits.ts';
import { priorities } from '../../kernel/priority.ts';
import { queueNames } from '../../kernel/queues.ts';
import { holdCodes } from './holds.ts';

const Count = (description: string) => Type.Integer({ minimum: 0, description });
const Hold = Type.Object(
  {
    code: Words(holdCodes),
    message: Type.String({ description: 'The reason in words, which may change.' }),
    subject: {
      ...Nullable(
        Type.Object({
          type: Words(['skill', 'organization', 'agent', 'api_key']),
          id: Type.String({ description: 'Of a skill category/version/name.' }),
          organization_id: Nullable(Type.String()),
        }),
      ),
      description:
        'What has the limit or the pause, or is not loaded; of taken slots the organization that runs the most.',
    },
  },
  { title: 'QueueHold' },
);
const HeldBy = Type.Array(Hold, {
  description: 'Why they wait; empty where they begin as soon as a worker comes to them.',
});
const counts = {
  waiting: Count('Those that are due and wait for a slot.'),
  later: Count('Those whose time has not come: delayed ones, and retries.'),
  at_least: Type.Boolean({
    description:
      'Whether more than `waiting` may wait and more than `later` come later: there are very many of both, which are counted to ' +
      'a bound. Where there are more kinds of jobs than are read, more than `running` and `suspended` may be so, too.',
  }),
  running: Count('Those under way.'),
  suspended: Count(
    'Runs that wait for time, an event, a person, a provider of models or another run.',
  ),
  oldest: {
    ...Nullable(
      Type.Object({
        job_id: Nullable(Id),
        since: Timestamp,
        priority: Nullable(Words(priorities)),
      }),
    ),
    description:
      'The job that has been due the longest, and since when; null where none waits. Of a skill or an agent it is ' +
      'among the longest waiting jobs of its organization, or null.',
  },
  next_at: {
    ...Nullable(Timestamp),
    description: 'When the next of the later ones begins; null where it is not known.',
  },
};
const Slots = {
  ...Nullable(
    Type.Object({
      workers: Count('Live processes with the role worker.'),
      slots: Count('Their slots, by WORKER_CONCURRENCY.'),
      kept: Count('Slots beyond these, for organizations that run nothing.'),
      taken: Count('Slots that are taken, as of the last heartbeats.'),
    }),
  ),
  description: 'The slots of all workers; null for webhooks.',
};

const Group = Type.Object(
  {
    name: Type.String({
      description: 'The id of the organization or the agent; of a skill category/version/name.',
    }),
    organization_id: Nullable(Type.String()),
    weight: {
      ...Nullable(Type.Integer({ minimum: 1 })),
      description: 'Of an organization in turns, for the administrator; null elsewhere.',
    },
    limits: Type.Array(
      Type.Object({
        limit: Type.Integer({ minimum: 0 }),
        per: Words(limitScopes),
        per_seconds: {
          ...Nullable(Type.Integer({ minimum: 1 })),
          description:
            'Null where the limit is of runs at a time; else so many start within these seconds.',
        },
      }),
      {
        description:
          'How many runs go on at a time or start within a time, and for whom they are counted: max_concurrency of an organization or an agent, concurrency and rate of a skill.',
      },
    ),
    paused: Type.Boolean({ description: 'Whether an operator has paused it.' }),
    ...counts,
    held_by: HeldBy,
  },
  { title: 'QueueGroup' },
);
const Groups = (description: string) =>
  Type.Object(
    { data: Type.Array(Group), total: Type.Integer(), limit: Type.Integer() },
    { description: `${description} The ${groupsMax} with the most waiting jobs.` },
  );
const groups = {
  organizations: Groups('By organization.'),
  skills: Groups('By skill.'),
  agents: Groups('By agent.'),
  held_by: { ...HeldBy, description: 'What holds the waiting jobs as a whole.' },
};

const noneOf = { data: [], total: 0, limit: groupsMax };
const example = {
  waiting: 120,
  later: 3,
  at_least: false,
  running: 16,
  suspended: 1,
  oldest: {
    job_id: '01990a5e-7c1b-7000-8f1e-0c5a7e9b2d11',
    since: '2026-01-01T00:00:00.000Z',
    priority: 'normal',
  },
  next_at: '2026-01-01T00:05:00.000Z',
};
const heldBy = [
  {
    code: 'slots_taken',
    message: 'Jobs of this organization wait for their turn: 16 of its runs are under way.',
    subject: null,
  },
];
const lists = {
  organizations: {
    ...noneOf,
    data: [
      {
        name: 'acme',
        organization_id: 'acme',
        weight: 1,
        limits: [],
        paused: false,
        ...example,
        held_by: heldBy,
      },
    ],
    total: 1,
  },
  skills: noneOf,
  agents: noneOf,
  held_by: heldBy,
};

export const OwnQueue = Type.Object(
  {
    as_of: Timestamp,
    queues: Type.Array(
      Type.Object({ queue: Words(queueNames), ...counts, held_by: HeldBy }, { title: 'OwnQueue' }),
    ),
    ...groups,
  },
  {
    title: 'OwnQueues',
    examples: [
      {
        as_of: '2026-01-01T00:01:00.000Z',
        queues: [{ queue: 'skill-execution', ...example, held_by: heldBy }],
        ...lists,
      },
    ],
  },
);

export const WholeQueue = Type.Object(
  {
    as_of: Timestamp,
    queues: Type.Array(
      Type.Object(
        { queue: Words(queueNames), ...counts, slots: Slots, held_by: HeldBy },
        { title: 'WholeQueue' },
      ),
    ),
    ...groups,
  },
  {
    title: 'WholeQueues',
    examples: [
      {
        as_of: '2026-01-01T00:01:00.000Z',
        queues: [
          {
            queue: 'skill-execution',
            ...example,
            slots: { workers: 1, slots: 16, kept: 1, taken: 16 },
            held_by: heldBy,
          },
        ],
        ...lists,
      },
    ],
  },
);
