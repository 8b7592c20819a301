import { useMutation } from '@tanstack/react-query';
import { type FormEvent, useEffect, useRef, useState } from 'react';
import { ApiError, type Schema } from '../api/client.ts';
import { type Priority, runSkill } from '../api/skills.ts';
import { InputFields, InputWay } from '../forms/InputFields.tsx';
import { priorities } from '../forms/PriorityField.tsx';
import { submitOnCtrlEnter } from '../forms/submit-keys.ts';
import { useInput } from '../forms/useInput.ts';
import { useMissingScopes } from '../shell/session.ts';
import { Button } from '../ui/Button.tsx';
import { Code } from '../ui/Code.tsx';
import { SelectField } from '../ui/Field.tsx';
import { ChevronDown, Play } from '../ui/icons.tsx';
import { Empty, Problem } from '../ui/Loading.tsx';
import { Menu } from '../ui/Menu.tsx';
import { NeedsScope } from '../ui/NeedsScope.tsx';
import { Section } from '../ui/Page.tsx';
import { AgentField, listedSkillPath } from '../ui/Pickers.tsx';
import { curlOf } from './curl.ts';
import { RunResult } from './RunResult.tsx';

/** What a form begins with. */
export interface Start {
  readonly input: unknown;
  readonly agentId: string;
}

/** Edits the input of a skill and runs it; the result is shown beside it. */
export function RunTab({ skill, start }: { skill: Schema<'Skill'>; start: Start }) {
  const { category, version, skill_name: skillName, parameters_schema, examples = [] } = skill;
  const input = useInput(start.input);
  const missing = useMissingScopes(skill.required_scopes);
  const [agentId, setAgentId] = useState(start.agentId);
  const [priority, setPriority] = useState<Priority | ''>('');
  /** The last accepted job. */
  const [jobId, setJobId] = useState<string>();
  const running = useMutation({
    mutationFn: (given: unknown) =>
      runSkill({ category, version, skillName }, { agentId, priority }, given),
    onSuccess: ({ job_id }) => setJobId(job_id),
  });
  const issues = running.error instanceof ApiError ? running.error.details : [];

  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    if (running.error === null) return;
    form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
  }, [running.error]);

  function fill(value: unknown) {
    input.fill(value);
    running.reset();
  }
  function submit(event: FormEvent) {
    event.preventDefault();
    if (missing.length > 0 || input.fault !== undefined || running.isPending) return;
    running.mutate(input.value ?? {});
  }
  return (
    <div className="grid items-start gap-5 lg:grid-cols-2">
      <Section
        title="Input"
        actions={
          <>
            <Examples examples={examples} onExample={fill} />
            <InputWay input={input} />
          </>
        }
      >
        <form
          ref={form}
          onSubmit={submit}
          onKeyDown={submitOnCtrlEnter}
          className="flex flex-col gap-5"
        >
          <InputFields input={input} schema={parameters_schema} issues={issues} />
          {running.error && <Problem error={running.error} />}
          {missing.length > 0 && <NeedsScope scopes={missing} act="A run" />}
          <div className="flex flex-wrap items-end justify-between gap-3 border-t pt-4">
            <div className="flex min-w-0 flex-wrap gap-3">
              <div className="w-48">
                <AgentField value={agentId} onValue={setAgentId} />
              </div>
              <div className="w-32">
                <SelectField
                  label="Priority"
                  value={priority}
                  options={choices}
                  onValue={setPriority}
                />
              </div>
            </div>
            <Button
              type="submit"
              look="primary"
              icon={<Play />}
              busy={running.isPending}
              disabled={missing.length > 0 || input.fault !== undefined}
              title="Ctrl Enter"
            >
              Run
            </Button>
          </div>
        </form>
      </Section>
      <div className="flex min-w-0 flex-col gap-5 lg:sticky lg:top-5">
        {jobId === undefined ? (
          <Section title="Run">
            <Empty icon={<Play />} title="No run yet">
              The run’s messages and result appear here live.
            </Empty>
          </Section>
        ) : (
          <div key={jobId} ref={show}>
            <RunResult jobId={jobId} />
          </div>
        )}
        <Section title="The same with curl">
          <Code
            text={curlOf(listedSkillPath(skill), { agentId, priority }, input.value ?? {})}
            label="Command"
          />
          <p className="mt-2 text-xs text-muted">
            <code className="font-mono">$KEY</code> is an API key. It waits for the end of the run;
            without <code className="font-mono">prefer</code> the answer is the job as it was
            accepted.
          </p>
        </Section>
      </div>
    </div>
  );
}

const choices = [{ value: '', label: 'the agent’s' }, ...priorities] as const;

/** On a phone it is below the form. */
const show = (element: HTMLElement | null) => element?.scrollIntoView({ block: 'nearest' });

function Examples({
  examples,
  onExample,
}: {
  examples: NonNullable<Schema<'Skill'>['examples']>;
  onExample: (input: unknown) => void;
}) {
  if (examples.length === 0) return null;
  return (
    <Menu
      label="Examples"
      trigger={
        <Button size="small" look="quiet">
          Examples
          <ChevronDown aria-hidden />
        </Button>
      }
      items={examples.map(({ input }, i) => ({
        label: `${i + 1}. ${shortened(JSON.stringify(input))}`,
        act: () => onExample(input),
      }))}
    />
  );
}

const shownMax = 48;
const shortened = (text: string) => (text.length > shownMax ? `${text.slice(0, shownMax)}…` : text);
