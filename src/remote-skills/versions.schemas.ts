/** What the API shows of the versions of remote skills. */
import { Type } from 'typebox';
import { FreeObject, Id, Nullable, Timestamp, Words } from '../http/schemas.ts';

export const RemoteVersion = Type.Object(
  {
    skill: Type.String({ description: 'category/version/name.' }),
    skill_id: Nullable({ ...Id, description: 'Null for a version that was never active.' }),
    skill_name: Type.String(),
    version: Type.String(),
    tool: Type.String({ description: 'Its name at the server.' }),
    state: {
      ...Words(['active', 'quarantined', 'withdrawn', 'rejected'] as const),
      description:
        'quarantined: it waits for an operator; rejected: an operator does not want it; withdrawn: its calls fail.',
    },
    reason: Nullable(
      Type.String({ description: 'Why it has this state, where there is more to say.' }),
    ),
    digest: Type.String({ description: 'SHA-256 over all that is pinned of the tool.' }),
    description: Type.String({ description: 'What the server says of the tool.' }),
    annotations: {
      ...FreeObject,
      description: 'What the server says of its effects; not trusted.',
    },
    retried: Type.Boolean({ description: 'Whether it is called again after a failure.' }),
    difference: Nullable(
      Type.String({
        description: 'What differs from the version before it, as lines with + and -.',
      }),
    ),
    created_at: Timestamp,
    activated_at: Nullable(Timestamp),
  },
  { title: 'RemoteSkillVersion' },
);

export const VersionCounts = Type.Object(
  {
    active: Type.Integer(),
    quarantined: Type.Integer(),
    withdrawn: Type.Integer(),
    rejected: Type.Integer(),
  },
  { description: 'Versions of its skills by state.' },
);
