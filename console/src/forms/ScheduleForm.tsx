import { useQuery } from '@tanstack/react-query';
import { useId, useState } from 'react';
import {
  changeSchedule,
  createSchedule,
  cronPreviewQuery,
  type Schedule,
} from '../api/schedules.ts';
import { cronWords } from '../schedules/cron.ts';
import { NextRuns } from '../schedules/NextRuns.tsx';
import { utc } from '../schedules/zones.ts';
import { Button } from '../ui/Button.tsx';
import { Dialog } from '../ui/Dialog.tsx';
import { issueOf, issuesWithin, TextField } from '../ui/Field.tsx';
import { Skeleton } from '../ui/Loading.tsx';
import { AgentField, SkillField, skillIssueOf, skillNameOf, skillPath } from '../ui/Pickers.tsx';
import { useAct } from '../ui/useAct.ts';
import { FormFrame } from './FormFrame.tsx';
import { InputFields, InputWay } from './InputFields.tsx';
import { ObjectField } from './ObjectField.tsx';
import { PriorityField, priorityOf } from './PriorityField.tsx';
import { useInput } from './useInput.ts';
import { useSettled } from './useSettled.ts';
import { useSkill } from './useSkill.ts';
import { ZoneField } from './ZoneField.tsx';

const shown = [
  ...['agent_id', 'skill_category', 'skill_name', 'skill_version'],
  ...['cron_expression', 'timezone', 'priority'],
];
const common = [
  ['5 minutes', '*/5 * * * *'],
  ['Hourly', '0 * * * *'],
  ['Daily', '0 9 * * *'],
  ['Weekdays', '0 9 * * MON-FRI'],
  ['Monthly', '0 9 1 * *'],
] as const;

/** Creates a schedule, or changes the given one. */
export function ScheduleForm({
  schedule,
  onClose,
  onDone,
}: {
  schedule?: Schedule;
  onClose: () => void;
  onDone?: (schedule: { readonly id: string }) => void;
}) {
  const [agentId, setAgentId] = useState(schedule?.agent_id ?? 'default');
  const [skill, setSkill] = useState(schedule ? skillPath(schedule) : '');
  const [cron, setCron] = useState(schedule?.cron_expression ?? '0 9 * * MON-FRI');
  const [zone, setZone] = useState(schedule?.timezone ?? utc);
  const [priority, setPriority] = useState<string>(schedule?.priority ?? '');
  const { skill: chosen, isLoading, example } = useSkill(skill);
  const input = useInput(example ?? {}, schedule?.input);
  const [skillIssue, setSkillIssue] = useState<string>();
  const inputId = useId();
  const settled = useSettled(cron);
  const settledZone = useSettled(zone.trim() || utc);
  const preview = useQuery(cronPreviewQuery(settled, settledZone));
  const saving = useAct({
    act: () => {
      const fields = {
        agent_id: agentId,
        ...skillNameOf(skill),
        cron_expression: cron,
        timezone: zone.trim() || utc,
        priority: priorityOf(priority),
        // A value that is not an object is refused with the platform's message.
        ...(input.isStored ? {} : { input: input.value as Record<string, unknown> }),
      };
      return schedule
        ? changeSchedule(schedule.id, fields)
        : createSchedule({ ...fields, enabled: true });
    },
    done: schedule ? 'The schedule is changed' : 'The schedule is made',
    changes: [['schedules']],
    quiet: true,
  });
  function submit() {
    setSkillIssue(skill === '' ? 'Choose what it runs' : undefined);
    if (input.fault !== undefined || skill === '') return;
    saving.mutate(undefined, {
      onSuccess(saved) {
        onClose();
        onDone?.(saved);
      },
    });
  }
  const refused = issueOf(saving.error, 'cron_expression');
  const zoneIssue = issueOf(saving.error, 'timezone') ?? issueOf(preview.error, 'timezone');
  const malformed =
    issueOf(preview.error, 'cron_expression') ??
    (preview.error && !zoneIssue ? preview.error.message : undefined);
  return (
    <Dialog
      open
      isForm
      onClose={onClose}
      wide
      title={schedule ? 'Edit schedule' : 'New schedule'}
      description="Runs a skill repeatedly."
    >
      <FormFrame
        verb={schedule ? 'Save' : 'Create schedule'}
        busy={saving.isPending || isLoading}
        error={saving.error}
        fields={shown}
        onSubmit={submit}
        onCancel={onClose}
      >
        <div className="grid gap-4 sm:grid-cols-2">
          <SkillField
            value={skill}
            onValue={(next) => {
              input.leave();
              setSkill(next);
            }}
            error={skillIssue ?? skillIssueOf(saving.error)}
          />
          <AgentField
            value={agentId}
            onValue={setAgentId}
            error={issueOf(saving.error, 'agent_id')}
          />
        </div>
        <div className="grid gap-4 sm:grid-cols-2">
          <div className="flex flex-col gap-2">
            <TextField
              label="Cron expression"
              hint="Minute, hour, day of month, month, day of week."
              error={refused ?? malformed}
              className="font-mono"
              spellCheck={false}
              autoComplete="off"
              value={cron}
              onValue={setCron}
            />
            <div className="-ml-2 flex flex-wrap">
              {common.map(([name, expression]) => (
                <Button key={name} size="small" look="quiet" onClick={() => setCron(expression)}>
                  {name}
                </Button>
              ))}
            </div>
            <ZoneField value={zone} onValue={setZone} error={zoneIssue} />
            <PriorityField
              none="the agent’s"
              value={priority}
              onValue={setPriority}
              error={saving.error}
            />
          </div>
          <div className="rounded-md border bg-sunken p-3" aria-live="polite">
            {malformed || zoneIssue ? (
              <p className="text-[13px] text-muted">
                The next five runs appear here once the expression and the time zone are valid.
              </p>
            ) : (
              <>
                <p className="mb-2 text-[13px] font-medium">{cronWords(settled) ?? settled}</p>
                <NextRuns expression={settled} zone={settledZone} />
              </>
            )}
          </div>
        </div>
        {isLoading && <Skeleton />}
        {skill !== '' && !isLoading && !chosen && (
          <ObjectField
            label="Input"
            hint="The input of each run. There is no active skill of that name, so there is no form."
            value={input.text}
            onValue={input.write}
            error={input.fault ?? issueOf(saving.error, 'input')}
          />
        )}
        {chosen && (
          <section aria-labelledby={inputId} className="flex flex-col gap-3">
            <div className="flex items-end justify-between gap-3">
              <h3 id={inputId} className="text-[13px] font-medium">
                Input
                <span className="block text-xs font-normal text-muted">The input of each run.</span>
              </h3>
              <InputWay input={input} />
            </div>
            <div className="rounded-md border p-3.5">
              <InputFields
                key={skill}
                input={input}
                schema={chosen.parameters_schema}
                issues={issuesWithin(saving.error, 'input')}
              />
            </div>
          </section>
        )}
      </FormFrame>
    </Dialog>
  );
}
