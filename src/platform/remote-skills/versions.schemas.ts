/** What the API takes and shows of all sources, and of the versions of their skills. */
import { Type } from 'typebox';
import {
  FreeObject,
  Id,
  Nullable,
  Slug,
  slugPattern,
  Timestamp,
  Words,
} from '../../adapters/http/schemas.ts';

/** Organizations of one source. */
const organizationsMax = 500;

export const OrganizationsField = Type.Optional(
  Type.Array(Type.String({ pattern: `^\\*$|${slugPattern}` }), {
    ...{ minItems: 1, maxItems: organizationsMax, uniqueItems: true },
    description:
      'The organizations that the skills belong to; for others they do not exist. ["*"] for all. Required where ' +
      'the source may have credentials, because each of these organizations acts with them: headers, an environment, ' +
      'authorization, a query, or a path or argument that is more than short words. Any other source belongs to all ' +
      'when it is added without the field. A change without it is refused where the source belongs to named organizations.',
  }),
);

export const sourceOrganizations = {
  organizations: Type.Array(Type.String(), {
    description: 'The organizations that the skills belong to; ["*"] for all.',
  }),
  are_organizations_named: Type.Boolean({
    description:
      'false: an earlier version of the platform has stored it, and it belongs to all organizations until an ' +
      'administrator names some, or ["*"].',
  }),
};
export const exampleOrganizations = { organizations: ['acme'], are_organizations_named: true };

const version = {
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
  organizations: Nullable(
    Type.Array(Slug, {
      description:
        'The organizations whose accounts were shown it, and to which alone it belongs; null where it was shown ' +
        'without an account.',
    }),
  ),
  created_at: Timestamp,
  activated_at: Nullable(Timestamp),
};

export const RemoteVersion = Type.Object(version, { title: 'RemoteSkillVersion' });

export const PinnedVersion = Type.Object(
  {
    ...version,
    definition: Type.Object(
      {
        title: Nullable(Type.String()),
        description: Type.String(),
        input: { ...FreeObject, description: 'JSON Schema of what it takes.' },
        output: Nullable({ ...FreeObject, description: 'JSON Schema of what it gives.' }),
        request: Nullable({
          ...FreeObject,
          description: 'How an operation is called: method, path, address and styles.',
        }),
      },
      { description: 'All that is pinned, as the server told it; its digest is `digest`.' },
    ),
  },
  {
    title: 'PinnedRemoteSkillVersion',
    description: 'A version with all that is pinned of it.',
    examples: [
      {
        ...{ skill: 'mcp-tickets/v1.1/create-ticket', skill_id: null },
        ...{ skill_name: 'create-ticket', version: 'v1.1', tool: 'createTicket' },
        ...{ state: 'quarantined', reason: null, digest: '0'.repeat(64) },
        ...{ description: 'Creates a ticket.', annotations: {}, retried: false, difference: null },
        ...{ organizations: null, created_at: '2026-01-01T00:00:00.000Z', activated_at: null },
        definition: {
          ...{ title: 'Create ticket', description: 'Creates a ticket.' },
          ...{ input: { type: 'object' }, output: null, request: null },
        },
      },
    ],
  },
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
