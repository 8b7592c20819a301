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
    minItems: 1,
    maxItems: organizationsMax,
    uniqueItems: true,
    description:
      'The organizations that the skills belong to; for others they do not exist. ["*"] for all. Required where ' +
      'the source may have credentials, because each of these organizations acts with them: headers, an environment, ' +
      'authorization, a query, or a path or argument that is more than short words. Any other source belongs to all ' +
      'when it is added without the field. A change without it is refused where the source belongs to named organizations.',
  }),
);

/** The name of a source, after which the category of its skills is named. */
export const SourceName = (kind: 'mcp' | 'api') =>
  Type.String({
    pattern: '^[a-z0-9]+(-[a-z0-9]+)*$',
    maxLength: 50,
    description: `In kebab case; its skills have the category ${kind}-<name>.`,
  });

export const Text = (maxLength: number, description: string) =>
  Type.String({ minLength: 1, maxLength, description });

export const TimeoutMs = (description: string) =>
  Type.Optional(Type.Integer({ minimum: 1_000, maximum: 3_600_000, default: 60_000, description }));

/** What the API shows of a source of any kind; `tools` is what it offers. */
export const sourceFields = (kind: 'mcp' | 'api', tools: string) => ({
  name: SourceName(kind),
  category: Type.String({ description: 'The category of its skills, which is also their scope.' }),
  organizations: Type.Array(Type.String(), {
    description: 'The organizations that the skills belong to; ["*"] for all.',
  }),
  are_organizations_named: Type.Boolean({
    description:
      'false: an earlier version of the platform has stored it, and it belongs to all organizations until an ' +
      'administrator names some, or ["*"].',
  }),
  timeout_ms: Type.Integer(),
  fault: Nullable(Type.String({ description: 'Why the last refresh failed.' })),
  fault_at: Nullable(Timestamp),
  refreshed_at: Nullable(Timestamp),
  left_out: Type.Array(Type.Object({ tool: Type.String(), reason: Type.String() }), {
    description: `${tools} that could not become skills: the first 100.`,
  }),
  left_out_total: Type.Integer(),
  created_at: Timestamp,
  updated_at: Timestamp,
});
export const exampleSource = {
  organizations: ['acme'],
  are_organizations_named: true,
  timeout_ms: 60_000,
  status: 'available',
  fault: null,
  fault_at: null,
  refreshed_at: '2026-01-01T00:00:00.000Z',
  left_out: [],
  left_out_total: 0,
  created_at: '2026-01-01T00:00:00.000Z',
  updated_at: '2026-01-01T00:00:00.000Z',
};

/** The versions of the skills of a source: their number in a list, and all of a source itself. */
export const VersionCounts = Type.Object(
  {
    active: Type.Integer(),
    quarantined: Type.Integer(),
    withdrawn: Type.Integer(),
    rejected: Type.Integer(),
  },
  { description: 'Versions of its skills by state.' },
);
export const exampleCounts = { active: 12, quarantined: 1, withdrawn: 0, rejected: 0 };

/** The path of a source, and that of a version of a skill of it. */
export const SourceParams = (what: string, example: string) =>
  Type.Object({
    name: Type.String({ description: `The name of the ${what}.`, examples: [example] }),
  });
export const SourceSkillParams = (what: string, example: string, skill: string) =>
  Type.Object({
    ...SourceParams(what, example).properties,
    version: Type.String({ description: 'The version.', examples: ['v1.1'] }),
    skillName: Type.String({ description: 'The name of the skill.', examples: [skill] }),
  });

export const ReadDigest = Type.String({
  pattern: '^[0-9a-f]{64}$',
  description: 'The digest of the version as it was read; another one is refused.',
});

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
