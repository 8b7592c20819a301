/** The versions of an agent: their changes side by side, and restoring one. */
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import {
  type AgentForSession,
  agentVersionQuery,
  agentVersionsQuery,
  restoreAgentVersion,
} from '../api/agents.ts';
import type { Schema } from '../api/client.ts';
import { SideBySide } from '../remote/Difference.tsx';
import { Button } from '../ui/Button.tsx';
import { classes } from '../ui/classes.ts';
import { Confirm } from '../ui/Dialog.tsx';
import { Field, Select } from '../ui/Field.tsx';
import { History, RotateCcw } from '../ui/icons.tsx';
import { Empty, Loaded } from '../ui/Loading.tsx';
import { NeedsScope } from '../ui/NeedsScope.tsx';
import { Section } from '../ui/Page.tsx';
import { Pagination } from '../ui/Pagination.tsx';
import { Time } from '../ui/Time.tsx';
import { useAct } from '../ui/useAct.ts';
import { changedLines } from './changed-lines.ts';

type Summary = Schema<'AgentVersionSummary'>;
type Version = Schema<'AgentVersion'>;

const size = 20;

const words: Readonly<Record<Summary['changed'][number], string>> = {
  instructions: 'Instructions',
  variables: 'Variables',
  model: 'Model',
  model_settings: 'Model settings',
  fallback_models: 'Fallback models',
  skills: 'Skills',
  tool_rules: 'Rules for calls',
  guards: 'Guards',
  approvals: 'Ask before',
  agents: 'Agents',
  memory: 'Memory',
  recall: 'Recall',
  profile: 'Profiles of users',
  memory_formation: 'Memories that form',
};

export function AgentVersions({
  agent,
  chosen,
  onChosen,
}: {
  agent: AgentForSession;
  /** The version to show; the current one by default. */
  chosen: number | undefined;
  onChosen: (version: number) => void;
}) {
  const [page, setPage] = useState(1);
  // The number is part of its key, so that a change shows the new version at once.
  const query = useQuery({
    ...agentVersionsQuery(agent.id, agent.version, page, size),
    placeholderData: keepPreviousData,
  });
  return (
    <Loaded query={query}>
      {({ data, total }) => (
        <div className="grid items-start gap-4 lg:grid-cols-[16rem_minmax(0,1fr)]">
          <Section title="Versions" flush>
            <ol className="divide-y">
              {data.map((one) => (
                <Entry
                  key={one.version}
                  version={one}
                  isShown={one.version === (chosen ?? agent.version)}
                  onShow={() => onChosen(one.version)}
                />
              ))}
            </ol>
            {total > size && <Pagination page={page} total={total} size={size} onPage={setPage} />}
          </Section>
          <Shown
            key={`${chosen ?? agent.version}`}
            agent={agent}
            version={chosen ?? agent.version}
            others={data}
          />
        </div>
      )}
    </Loaded>
  );
}

function Entry({
  version,
  isShown,
  onShow,
}: {
  version: Summary;
  isShown: boolean;
  onShow: () => void;
}) {
  return (
    <li>
      <button
        type="button"
        aria-pressed={isShown}
        onClick={onShow}
        className={classes(
          'flex w-full flex-col gap-0.5 px-4 py-2.5 text-left text-[13px] -outline-offset-2',
          isShown ? 'bg-accent-soft' : 'hover:bg-sunken',
        )}
      >
        <span className="flex items-baseline gap-2">
          <span className="font-medium">Version {version.version}</span>
          {version.is_current && <span className="text-xs text-muted">present</span>}
          <span className="ml-auto text-xs text-muted">
            <Time value={version.created_at} />
          </span>
        </span>
        <span className="text-xs text-muted">{aboutOf(version)}</span>
      </button>
    </li>
  );
}

function aboutOf({ changed, restored_from }: Summary): string {
  const fields = changed.map((name) => words[name]).join(', ');
  if (restored_from !== null) return `Back to version ${restored_from}: ${fields}`;
  return fields === '' ? 'The first that was kept' : fields;
}

/** A version beside another one. */
function Shown({
  agent,
  version,
  others,
}: {
  agent: AgentForSession;
  version: number;
  others: readonly Summary[];
}) {
  const [compare, setCompare] = useState<number>();
  const [isAsking, setAsking] = useState(false);
  const missing = agent.missing_scopes;
  const query = useQuery({
    ...agentVersionQuery(agent.id, version, compare),
    placeholderData: keepPreviousData,
  });
  const restore = useAct({
    act: () => restoreAgentVersion(agent.id, version),
    done: (changed) => `The agent works as in version ${version} again: version ${changed.version}`,
    changes: [['agents']],
    quiet: true,
  });
  return (
    <Section
      title={`Version ${version}`}
      actions={
        version !== agent.version &&
        (missing.length > 0 ? (
          <NeedsScope scopes={missing} act="Going back to it" />
        ) : (
          <Button size="small" icon={<RotateCcw />} onClick={() => setAsking(true)}>
            Go back to it
          </Button>
        ))
      }
    >
      <Loaded query={query}>
        {(loaded) => (
          <div className="flex flex-col gap-5">
            <Field label="Compared with">
              {(control) => (
                <Select
                  {...control}
                  className="max-w-60"
                  value={`${loaded.compared_to ?? ''}`}
                  onChange={({ target }) => setCompare(Number(target.value))}
                >
                  {loaded.compared_to === null && <option value="">nothing before it</option>}
                  {numbersOf(others, loaded).map((n) => (
                    <option key={n} value={`${n}`}>
                      Version {n}
                      {n === agent.version ? ' (present)' : ''}
                    </option>
                  ))}
                </Select>
              )}
            </Field>
            <Differences version={loaded} />
          </div>
        )}
      </Loaded>
      <Confirm
        open={isAsking}
        onClose={() => setAsking(false)}
        title={`Go back to version ${version}?`}
        verb="Go back"
        keep="Keep the present one"
        act={() => restore.mutateAsync()}
      >
        The agent gets the instructions, the model with its settings and fallbacks, the skills and
        the agents of version {version}. That makes a new version, so the present one is not lost.
      </Confirm>
    </Section>
  );
}

function numbersOf(others: readonly Summary[], { version, compared_to }: Version): number[] {
  const known = new Set(others.map((one) => one.version));
  if (compared_to !== null) known.add(compared_to);
  known.delete(version);
  return [...known].sort((a, b) => b - a);
}

function Differences({ version }: { version: Version }) {
  const { differences, compared_to } = version;
  if (differences.length === 0) {
    return (
      <Empty
        icon={<History />}
        title={compared_to === null ? 'The first version' : 'No difference'}
      >
        {compared_to === null
          ? 'Nothing before it was kept.'
          : `The agent worked as in version ${compared_to}.`}
      </Empty>
    );
  }
  return differences.map(({ field, before, after }) => (
    <div key={field} className="flex flex-col gap-2">
      <h3 className="text-[13px] font-medium">{words[field]}</h3>
      <SideBySide
        label={`${words[field]}: what has changed`}
        heads={[`Version ${compared_to}`, `Version ${version.version}`]}
        rows={changedLines(textOf(before), textOf(after))}
      />
    </div>
  ));
}

/** A list has a line for each of its entries. */
function textOf(value: unknown): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'string') return value;
  return Array.isArray(value) ? value.join('\n') : JSON.stringify(value, null, 2);
}
