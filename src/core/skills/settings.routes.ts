/** `/api/skills/:id/config`: an organization's values of the settings that a skill declares (docs/skills.md). */
import { Type } from 'typebox';
import { callerOf } from '../../adapters/http/authenticate.ts';
import { lookUp } from '../../adapters/http/look-up.ts';
import { apiRefusals, bodyRefusals } from '../../adapters/http/refusals.ts';
import { Nothing, Nullable, Timestamp, Words } from '../../adapters/http/schemas.ts';
import type { Server } from '../../adapters/http/server.ts';
import { requireScopes } from '../../kernel/caller.ts';
import { type Skill, type SkillRegistry, skillKey } from './registry.ts';
import type { SettingSource, SkillSettings } from './settings.ts';
import { valueBytesMax } from './settings-rules.ts';

const tags = ['Skills'];
const security = [{ apiKey: [] }];

const sources: readonly SettingSource[] = ['organization', 'environment', 'default', 'missing'];

const settingExample = {
  name: 'API_KEY',
  description: 'Key of the weather service.',
  secret: true,
  required: true,
  default: null,
  source: 'organization',
  value: null,
  updated_at: '2026-01-01T00:00:00.000Z',
  fault: null,
};

export const Setting = Type.Object(
  {
    name: Type.String(),
    description: Type.String(),
    secret: Type.Boolean({ description: 'Its value is never shown.' }),
    required: Type.Boolean({ description: 'Runs do not start while it has no value.' }),
    default: Nullable(Type.String()),
    source: Type.Unsafe<SettingSource>({
      ...Words(sources),
      description: 'Where its value comes from; missing if there is none.',
    }),
    value: Nullable(
      Type.String({
        description:
          "The organization's value or the default; null for a secret and for a value of the environment.",
      }),
    ),
    updated_at: Nullable(Timestamp),
    fault: Nullable(Type.String({ description: 'Why its stored value cannot be used.' })),
  },
  {
    title: 'SkillSetting',
    examples: [settingExample],
  },
);

const SkillConfiguration = Type.Object(
  {
    skill: Type.String({ description: 'category/version/name' }),
    is_complete: Type.Boolean({ description: 'Whether runs of the skill can start.' }),
    settings: Type.Array(Setting, { description: 'In the order of the definition.' }),
  },
  {
    title: 'SkillConfiguration',
    description: 'The settings that the skill declares, with where their values come from.',
    examples: [{ skill: 'web/v1.0/weather', is_complete: true, settings: [settingExample] }],
  },
);

const Values = Type.Record(
  Type.String({ pattern: '^[A-Z][A-Z0-9_]{0,63}$' }),
  Nullable(Type.String({ minLength: 1, maxLength: valueBytesMax })),
  {
    additionalProperties: false,
    maxProperties: 50,
    title: 'SkillConfigurationValues',
    description:
      'Values by name of the setting; null deletes the stored value. Settings that are left out keep theirs.',
    examples: [{ API_KEY: 'key-from-the-service' }],
  },
);

const Params = Type.Object({
  id: Type.String({ description: 'Id of a version of the skill, as GET /api/skills shows it.' }),
});

export function skillSettingsRoutes(
  server: Server,
  skills: SkillRegistry,
  settings: SkillSettings,
): void {
  getConfigRoute(server, skills, settings);
  changeConfigRoute(server, skills, settings);
  clearConfigRoute(server, skills, settings);
}

/** An unknown skill is 404 and a missing scope 403 before any other check (docs/decisions/order-of-checks.md). */
const lookUpSkill = (skills: SkillRegistry, needsScopes: boolean) =>
  lookUp('id', (id, { organizationId, scopes }) => {
    const skill = skills.byId(organizationId, id);
    if (needsScopes) requireScopes(scopes, skill.requiredScopes);
  });

function getConfigRoute(server: Server, skills: SkillRegistry, settings: SkillSettings): void {
  server.get(
    '/api/skills/:id/config',
    {
      onRequest: lookUpSkill(skills, false),
      schema: {
        tags,
        security,
        operationId: 'getSkillConfig',
        summary: 'Show the settings of a skill',
        description: 'Values of secrets are never shown, only where they come from.',
        params: Params,
        response: { 200: SkillConfiguration, ...apiRefusals('skill_not_found') },
      },
    },
    async (request) => {
      const { organizationId } = callerOf(request);
      const skill = skills.byId(organizationId, request.params.id);
      return configurationOf(skill, await settings.show(organizationId, skill));
    },
  );
}

function changeConfigRoute(server: Server, skills: SkillRegistry, settings: SkillSettings): void {
  server.put(
    '/api/skills/:id/config',
    {
      onRequest: lookUpSkill(skills, true),
      schema: {
        tags,
        security,
        operationId: 'changeSkillConfig',
        summary: 'Set values of the settings of a skill',
        description:
          'Sets the values that are sent, deletes those that are null, and keeps all others. They are stored ' +
          "encrypted, and apply to the caller's organization and all versions of the skill. The API key needs " +
          'the scopes of the skill.',
        params: Params,
        body: Values,
        response: {
          200: SkillConfiguration,
          ...apiRefusals('skill_not_found', 'insufficient_scope', 'conflict', ...bodyRefusals),
        },
      },
    },
    async (request) => {
      const { organizationId } = callerOf(request);
      const skill = skills.byId(organizationId, request.params.id);
      return configurationOf(skill, await settings.change(organizationId, skill, request.body));
    },
  );
}

function clearConfigRoute(server: Server, skills: SkillRegistry, settings: SkillSettings): void {
  server.delete(
    '/api/skills/:id/config',
    {
      onRequest: lookUpSkill(skills, true),
      schema: {
        tags,
        security,
        operationId: 'clearSkillConfig',
        summary: 'Delete all values of the settings of a skill',
        description:
          "Deletes the values of the caller's organization for all versions of the skill; the environment and " +
          'the defaults apply again.',
        params: Params,
        response: { 204: Nothing, ...apiRefusals('skill_not_found', 'insufficient_scope') },
      },
    },
    async (request, reply) => {
      const { organizationId } = callerOf(request);
      const skill = skills.byId(organizationId, request.params.id);
      await settings.clear(organizationId, skill);
      return reply.status(204).send(null);
    },
  );
}

function configurationOf(skill: Skill, settings: Awaited<ReturnType<SkillSettings['show']>>) {
  const { category, version, name } = skill;
  const isUsable = (one: (typeof settings)[number]) =>
    one.fault === null && !(one.required && one.source === 'missing');
  return {
    skill: skillKey(category, version, name),
    is_complete: settings.every(isUsable),
    settings,
  };
}
