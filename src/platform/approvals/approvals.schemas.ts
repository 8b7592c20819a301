import { Type } from 'typebox';
import { approvalStatuses } from '../../adapters/database/tables.ts';
import {
  FilterText,
  FreeObject,
  Id,
  Nullable,
  Page,
  Slug,
  Timestamp,
  Words,
} from '../../adapters/http/schemas.ts';

/** Characters of a reason. */
const reasonMax = 2_000;

const exampleId = '019a9d3c-5b7e-7c41-8a2f-3d5e7f901b2c';

export const Approval = Type.Object(
  {
    id: Id,
    approval_id: { ...Id, description: 'The same as id.' },
    job_id: Id,
    agent_id: Slug,
    conversation_id: Id,
    user_id: Nullable(Type.String({ description: 'The user of the job, as the job shows it.' })),
    step: Type.String({ description: 'The name of the step that waits.' }),
    title: Type.String(),
    details: { ...FreeObject, description: 'What is asked, as the run gave it.' },
    link: Nullable(
      Type.Object(
        {
          url: Type.String({ description: 'To be shown whole.' }),
          host: Type.String({ description: 'Of the address, in ASCII.' }),
        },
        {
          description:
            'The page that a person is to open before approving, from `link.url` of the details. Null without one, and ' +
            'for an address that is not https.',
        },
      ),
    ),
    digest: Type.String({
      description: 'SHA-256, in hex, of title, details and fields: of exactly what is asked.',
    }),
    status: Words(approvalStatuses),
    requested_at: Timestamp,
    expires_at: Timestamp,
    decided_at: Nullable({
      ...Timestamp,
      description: 'When it was decided, expired or was cancelled.',
    }),
    decided_by: Nullable(
      Type.Object(
        {
          kind: Words(['api_key', 'console']),
          id: {
            ...Id,
            description: 'The API key, or the session of the console.',
          },
          api_key_id: Type.Optional({
            ...Id,
            description: 'Of a session: the API key with which it acts.',
          }),
          name: Nullable(
            Type.String({
              description:
                'The client name of the API key, or Administrator for a session with the admin secret.',
            }),
          ),
        },
        { description: 'Who approved or rejected it.' },
      ),
    ),
    reason: Nullable(Type.String({ description: 'Given with the decision.' })),
    fields: Nullable({
      ...FreeObject,
      description:
        'The form that the decision fills in: a JSON Schema of an object whose properties are texts, numbers, ' +
        'booleans and choices. Null without one.',
    }),
    answer: Nullable({
      ...FreeObject,
      description:
        'What was filled into the form; null without one, and where it was not approved.',
    }),
  },
  {
    title: 'Approval',
    description: 'The approval.',
    examples: [
      {
        id: exampleId,
        approval_id: exampleId,
        job_id: '019a9d3c-5b7e-7c41-8a2f-3d5e7f901b2d',
        agent_id: 'default',
        conversation_id: '019a9d3c-5b7e-7c41-8a2f-3d5e7f901b2e',
        user_id: 'ada',
        step: 'ship',
        title: 'Ship order 1042?',
        details: { total: '129.00 EUR' },
        link: null,
        digest: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
        status: 'pending',
        requested_at: '2026-01-01T00:00:00.000Z',
        expires_at: '2026-01-08T00:00:00.000Z',
        decided_at: null,
        decided_by: null,
        reason: null,
        fields: null,
        answer: null,
      },
    ],
  },
);

export const ApprovalQuery = Type.Object({
  status: Type.Optional({ ...Words(approvalStatuses), description: 'Approvals of this status.' }),
  job_id: Type.Optional({
    ...Id,
    description: 'Approvals that this job, or one of the first 1,000 jobs below it, asked for.',
  }),
  agent_id: Type.Optional(FilterText('Approvals of jobs of this agent.')),
  ...Page.properties,
});

export const DecisionBody = Type.Object(
  {
    reason: Type.Optional(
      Type.String({
        maxLength: reasonMax,
        description: `Shown with the approval and given to the run: at most ${reasonMax} characters.`,
      }),
    ),
  },
  { title: 'ApprovalDecision', additionalProperties: false, examples: [{ reason: 'Checked.' }] },
);

export const ApprovingBody = Type.Object(
  {
    ...DecisionBody.properties,
    answer: Type.Optional({
      ...FreeObject,
      description: 'The values of the fields, by name, for an approval that has fields.',
    }),
  },
  {
    title: 'ApprovalGrant',
    additionalProperties: false,
    examples: [{ reason: 'Checked.' }, { answer: { carrier: 'post' } }],
  },
);
