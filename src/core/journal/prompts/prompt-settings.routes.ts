/** `/admin/organizations/:organizationId/prompts`: whether the prompts of an organization are kept, how long and how many. */
import { Type } from 'typebox';
import { lookUp } from '../../../adapters/http/look-up.ts';
import { adminRefusals, bodyRefusals } from '../../../adapters/http/refusals.ts';
import { Nullable, Slug, Words } from '../../../adapters/http/schemas.ts';
import type { Server } from '../../../adapters/http/server.ts';
import { type PromptSettings, promptKeeping } from './prompt-settings.ts';

const path = '/admin/organizations/:organizationId/prompts';
const operation = {
  tags: ['Jobs'],
  security: [{ adminBearer: [] }, { adminHeader: [] }] as Record<string, string[]>[],
  params: Type.Object({
    organizationId: Type.String({ description: 'The id of the organization.' }),
  }),
};
const keep = Words(promptKeeping);
const days = Type.Integer({ minimum: 1, maximum: 36_500 });
const size = Type.Integer({ minimum: 0, maximum: 1_000_000 });
const own = {
  keep: {
    ...Nullable(keep),
    description:
      'Whose prompts are kept: of no agent (off), of those with keep_prompts (agents), or of all. Null follows KEEP_PROMPTS.',
  },
  retention_days: {
    ...Nullable(days),
    description:
      'Days that the prompts of a job are kept after the last of them. Null follows PROMPT_RETENTION_DAYS.',
  },
  max_mb: {
    ...Nullable(size),
    description:
      'MiB that all kept prompts may have; where they have that many, new ones are not kept. Null follows PROMPTS_MAX_MB.',
  },
};
const example = { keep: 'all', retention_days: 3, max_mb: null };
const NewPromptSettings = Type.Partial(Type.Object(own), {
  title: 'NewPromptSettings',
  additionalProperties: false,
  examples: [example],
});
const PromptSettingsBody = Type.Object(
  {
    organization_id: Slug,
    ...own,
    applied: Type.Object(
      { keep, retention_days: days, max_mb: size },
      { description: 'What holds: its own settings, and those of the platform for the others.' },
    ),
    kept_bytes: Type.Integer({ description: 'Bytes of its kept prompts.' }),
  },
  {
    title: 'PromptSettings',
    examples: [
      {
        organization_id: 'acme',
        ...example,
        applied: { keep: 'all', retention_days: 3, max_mb: 256 },
        kept_bytes: 40_960,
      },
    ],
  },
);

export function promptSettingsRoutes(server: Server, prompts: PromptSettings) {
  const onRequest = lookUp('organizationId', (id) => prompts.find(id));
  const getSchema = {
    ...operation,
    operationId: 'getOrganizationPrompts',
    summary: 'Get whether the prompts of an organization are kept',
    response: { 200: PromptSettingsBody, ...adminRefusals('not_found') },
  };
  server.get(path, { onRequest, schema: getSchema }, ({ params }) =>
    prompts.find(params.organizationId),
  );
  const setSchema = {
    ...operation,
    operationId: 'setOrganizationPrompts',
    summary: 'Set whether the prompts of an organization are kept, how long and how many',
    description:
      'Settings that are left out stay as they are. All processes follow within seconds. Prompts that are kept already stay until their days have passed.',
    body: NewPromptSettings,
    response: { 200: PromptSettingsBody, ...adminRefusals('not_found', ...bodyRefusals) },
  };
  server.put(path, { onRequest, schema: setSchema }, ({ params, body }) =>
    prompts.set(params.organizationId, body),
  );
}
