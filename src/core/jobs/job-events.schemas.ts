/**
 * The events of a job's stream. The types of published events and the description of the stream in
 * `/openapi.json` follow from these schemas.
 */
import { type Static, Type } from 'typebox';
import { StreamedEvents } from '../../adapters/http/event-stream.ts';
import { Id, Nullable, Timestamp } from '../../adapters/http/schemas.ts';
import { NamedFile } from '../files/files.schemas.ts';
import { JobError, JobStatus } from './jobs.schemas.ts';

const at = Timestamp;
const step = Type.Integer({ description: 'The number of the step of the job.' });
const tool = {
  step,
  call_id: Type.String({ description: 'The id that the model gave the call.' }),
  tool: Type.String(),
};

/** The data of each type of event. */
const eventData = {
  status: Type.Object(
    {
      status: JobStatus,
      attempt: Type.Optional(Type.Integer()),
      error: Type.Optional({
        ...Nullable(JobError),
        description: 'Why an attempt or the job failed.',
      }),
      run_at: Type.Optional({ ...Timestamp, description: 'When it is tried again.' }),
      due_at: Type.Optional({
        ...Timestamp,
        description: 'When the first of its waits ends by itself.',
      }),
      resumed_at: Type.Optional({ ...Timestamp, description: 'When it went on after a wait.' }),
      delivered_to: Type.Optional({
        ...Id,
        description: 'The job whose run has taken its message, and with which it ends.',
      }),
      at,
    },
    { description: 'The job has reached a status.' },
  ),
  log: Type.Object(
    {
      message: Type.String(),
      fields: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
      at,
    },
    { description: 'A line of the log of its run.' },
  ),
  approval: Type.Object(
    { title: Type.String({ description: 'What is asked.' }), at },
    {
      description:
        'A service outside that the run calls asks a person, and the call is held: the job stays active, and one of ' +
        'its approvals is pending.',
    },
  ),
  progress: Type.Object(
    { fraction: Type.Number({ description: 'From 0 to 1.' }), note: Nullable(Type.String()), at },
    { description: 'How far its run is.' },
  ),
  message: Type.Object(
    {
      role: Type.String(),
      content: Type.String(),
      step: Type.Optional(step),
      files: Type.Optional(
        Type.Array(NamedFile, { description: 'The pictures that the model has made.' }),
      ),
      at,
    },
    { description: 'A message of its conversation.' },
  ),
  token: Type.Object(
    { step, text: Type.String(), at },
    { description: "A piece of a model's text, which the message has whole." },
  ),
  tool_call: Type.Object(
    { ...tool, input: Type.Unknown(), at },
    { description: 'A model calls a tool.' },
  ),
  tool_result: Type.Object(
    {
      ...tool,
      output: Type.Optional(Type.Unknown()),
      error: Type.Optional(Type.Object({ code: Type.String(), message: Type.String() })),
      at,
    },
    { description: 'What the tool gave, or why it failed.' },
  ),
};

type EventData = typeof eventData;
export type JobEventType = keyof EventData;
/** The data of the events of a type. */
export type JobEventData<Type extends JobEventType> = Static<EventData[Type]>;
/** A type with its data. */
export type TypedJobEvent = {
  [Type in JobEventType]: { readonly type: Type; readonly data: JobEventData<Type> };
}[JobEventType];

export const JobEventSchema = StreamedEvents('Job', eventData, {
  id: '1.0',
  event: 'status',
  data: { status: 'active', attempt: 1, at: '2026-01-01T00:00:00.001Z' },
});
