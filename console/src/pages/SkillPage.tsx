import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { Schema } from '../api/client.ts';
import { jobQuery } from '../api/jobs.ts';
import {
  allSkillsQuery,
  anySkillQuery,
  setSkillActive,
  skillConfigQuery,
  skillQuery,
  skillsQuery,
} from '../api/skills.ts';
import { useIsAdministrator } from '../shell/session.ts';
import { limitTexts } from '../skills/limits.ts';
import { RunTab } from '../skills/RunTab.tsx';
import { SchemaTable } from '../skills/SchemaTable.tsx';
import { MissingSettings, SettingsTab } from '../skills/SettingsTab.tsx';
import { isSchema, type JsonSchema } from '../skills/schema.ts';
import { UsedBy } from '../skills/UsedBy.tsx';
import { Button } from '../ui/Button.tsx';
import { classes } from '../ui/classes.ts';
import { Confirm } from '../ui/Dialog.tsx';
import { textLink } from '../ui/Links.tsx';
import { Empty, Loaded } from '../ui/Loading.tsx';
import { Page, Section } from '../ui/Page.tsx';
import { Pending } from '../ui/Pending.tsx';
import { Enabled, Tag } from '../ui/Status.tsx';
import { Tabs } from '../ui/Tabs.tsx';
import { useAct } from '../ui/useAct.ts';
import { Words } from '../ui/Words.tsx';

const route = getRouteApi('/shell/skills/$category/$version/$name');
const parent = { label: 'Skills', to: '/skills' };

/** One version of a skill: run it, its schemas, and its users. */
export function SkillPage() {
  const { category, version, name } = route.useParams();
  const isAdministrator = useIsAdministrator();
  const query = useQuery(
    isAdministrator ? anySkillQuery(category, version, name) : skillQuery(category, version, name),
  );
  if (query.data === undefined) {
    return (
      <Page title={name} about={<Tag>{version}</Tag>} parent={parent}>
        <Pending query={query} />
      </Page>
    );
  }
  return <Shown key={query.data.id} skill={query.data} />;
}

function Shown({ skill }: { skill: Schema<'Skill'> }) {
  const { category, version, skill_name: name, is_active, parameters_schema } = skill;
  const { tab = 'run', from } = route.useSearch();
  const navigate = route.useNavigate();
  const isAdministrator = useIsAdministrator();
  const { data: config } = useQuery(skillConfigQuery(skill.id));
  const limits = limitTexts(skill);
  const open = (value: string) =>
    void navigate({ search: (before) => ({ ...before, tab: value }), replace: true });
  return (
    <Page
      title={skill.display_name}
      parent={parent}
      about={
        <>
          <Tag>
            {category}/{version}/{name}
          </Tag>
          {!is_active && <Enabled is={false} />}
          <OtherVersions skill={skill} />
        </>
      }
      actions={isAdministrator && <Switching skill={skill} />}
    >
      <p className="-mt-2 max-w-3xl leading-relaxed text-pretty text-muted">
        <Words text={skill.description} />
      </p>
      {limits.length > 0 && <p className="text-[13px] text-muted">Limits: {limits.join(' · ')}</p>}
      {tab !== 'settings' && <MissingSettings config={config} onOpen={() => open('settings')} />}
      <Tabs
        value={tab}
        onValue={open}
        tabs={[
          {
            value: 'run',
            label: 'Run',
            content: is_active ? (
              <Begun key={from} skill={skill} from={from} />
            ) : (
              <Section>
                <Empty title="This version is disabled">
                  It takes no new work; accepted jobs finish.
                </Empty>
              </Section>
            ),
          },
          ...(config === undefined || config.settings.length === 0
            ? []
            : [
                {
                  value: 'settings',
                  label: 'Settings',
                  content: <SettingsTab skill={skill} />,
                },
              ]),
          {
            value: 'schemas',
            label: 'Schemas',
            content: (
              <div className="flex flex-col gap-5">
                <SchemaTable title="Input" schema={parameters_schema} />
                <SchemaTable title="Output" schema={skill.output_schema} />
              </div>
            ),
          },
          {
            value: 'usages',
            label: 'Used by',
            content: <UsedBy category={category} version={version} name={name} />,
          },
        ]}
      />
    </Page>
  );
}

/** The form, once its initial input is known. */
function Begun({ skill, from }: { skill: Schema<'Skill'>; from: string | undefined }) {
  const query = useQuery({ ...jobQuery(from ?? ''), enabled: from !== undefined });
  if (from === undefined) {
    return <RunTab skill={skill} start={{ input: firstInput(skill), agentId: 'default' }} />;
  }
  return (
    <Loaded query={query}>
      {({ input, agent_id }) => (
        <>
          <p className="mb-3 text-[13px] text-muted">
            The input is that of{' '}
            <Link
              to="/jobs/$jobId"
              params={{ jobId: from }}
              className={classes('font-medium', textLink)}
            >
              an earlier run
            </Link>
            .
          </p>
          <RunTab skill={skill} start={{ input, agentId: agent_id }} />
        </>
      )}
    </Loaded>
  );
}

/** A valid example, or else the schema's own suggestion. */
function firstInput({ examples = [], parameters_schema: schema }: Schema<'Skill'>): unknown {
  const [example] = examples;
  if (example !== undefined) return example.input;
  if (Array.isArray(schema['examples'])) return schema['examples'][0];
  return schema['default'] ?? suggested(schema);
}

/** What is required and has a value to begin with. */
function suggested({ properties, required }: JsonSchema): unknown {
  if (!isSchema(properties)) return undefined;
  const names = Array.isArray(required) ? required : [];
  const values = Object.entries(properties).flatMap(([name, property]) => {
    if (!isSchema(property)) return [];
    const [example] = Array.isArray(property['examples']) ? property['examples'] : [];
    const value = example ?? (names.includes(name) ? property['default'] : undefined);
    return value === undefined ? [] : [[name, value]];
  });
  return Object.fromEntries(values) as unknown;
}

function OtherVersions({ skill }: { skill: Schema<'Skill'> }) {
  const isAdministrator = useIsAdministrator();
  const { data } = useQuery(isAdministrator ? allSkillsQuery() : skillsQuery());
  const others = (data ?? []).filter(
    ({ category, skill_name, version }) =>
      category === skill.category && skill_name === skill.skill_name && version !== skill.version,
  );
  if (others.length === 0) return null;
  return (
    <nav aria-label="Other versions" className="flex flex-wrap items-center gap-2 text-[13px]">
      <span className="text-muted">also</span>
      {others.map(({ category, version, skill_name: name, is_active }) => (
        <Link
          key={version}
          to="/skills/$category/$version/$name"
          params={{ category, version, name }}
          search={({ tab }) => (tab === undefined ? {} : { tab })}
          className={textLink}
        >
          {version}
          {!is_active && <span className="text-muted"> (disabled)</span>}
        </Link>
      ))}
    </nav>
  );
}

/** Takes the version out of use, or back into it. */
function Switching({ skill }: { skill: Schema<'Skill'> }) {
  const { category, version, skill_name: skillName } = skill;
  const [isAsking, setAsking] = useState(false);
  const path = { category, version, skillName };
  const changing = useAct({
    act: (isActive: boolean) => setSkillActive(path, isActive),
    done: ({ is_active }) => (is_active ? 'The version is enabled' : 'The version is disabled'),
    failed: 'The version was not changed',
    changes: [['skills']],
  });
  if (!skill.is_active) {
    return (
      <Button busy={changing.isPending} onClick={() => changing.mutate(true)}>
        Enable
      </Button>
    );
  }
  return (
    <>
      <Button onClick={() => setAsking(true)}>Disable…</Button>
      <Confirm
        open={isAsking}
        onClose={() => setAsking(false)}
        title={`Disable ${category}/${version}/${skillName}?`}
        verb="Disable"
        act={() => changing.mutateAsync(false)}
      >
        It takes no new work in all organizations, also not from schedules and triggers. Accepted
        jobs finish. It can be enabled again.
      </Confirm>
    </>
  );
}
