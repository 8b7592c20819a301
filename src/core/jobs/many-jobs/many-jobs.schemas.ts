/** What commands for many jobs answer. */
import { Type } from 'typebox';
import { Nullable } from '../../../adapters/http/schemas.ts';

const Count = (description: string) => Type.Integer({ minimum: 0, description });
const progress = {
  done: Type.Boolean({ description: 'Whether no such job was left.' }),
  remaining: Count('Such jobs that this request has not come to, counted to 10,000.'),
  next: {
    ...Nullable(Type.String()),
    description:
      'The value of after with which the next request goes on; null at the beginning and the end.',
  },
};
const progressExample = { done: true, remaining: 0, next: null };
export const CancelledJobs = Type.Object(
  {
    cancelled: Count('Jobs that have ended as cancelled.'),
    stopping: Count('Active jobs that were asked to stop.'),
    ...progress,
  },
  { title: 'CancelledJobs', examples: [{ cancelled: 120, stopping: 2, ...progressExample }] },
);
export const RetriedJobs = Type.Object(
  {
    retried: Count('Jobs that run again, as new ones.'),
    refused: Type.Record(Type.String(), Type.Integer(), {
      description: 'Jobs that a single retry would refuse, by its error code.',
    }),
    ...progress,
  },
  {
    title: 'RetriedJobs',
    examples: [{ retried: 118, refused: { agent_paused: 2 }, ...progressExample }],
  },
);
