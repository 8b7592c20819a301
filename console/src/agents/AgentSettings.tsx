/** The settings of an agent. Sends only changed fields. */
import { useBlocker } from '@tanstack/react-router';
import { useState } from 'react';
import { type AgentForSession, changeAgent } from '../api/agents.ts';
import type { Schema } from '../api/client.ts';
import {
  AgentMemoryFields,
  formationOf,
  memoryOf,
  profileOf,
  recallOf,
} from '../forms/AgentMemoryFields.tsx';
import { CalledAgentsField } from '../forms/CalledAgentsField.tsx';
import { GuardsField, guardsOf, rulesOf, ToolRulesField } from '../forms/ControlFields.tsx';
import { FallbackModelsField } from '../forms/FallbackModelsField.tsx';
import { FormProblem } from '../forms/FormProblem.tsx';
import { ModelSettingsFields } from '../forms/ModelSettingsFields.tsx';
import {
  isSame,
  type SettingTexts,
  settingIssues,
  settingsOf,
  settingTexts,
} from '../forms/model-settings.ts';
import { numberOf } from '../forms/numbers.ts';
import { jsonText, ObjectField } from '../forms/ObjectField.tsx';
import { objectOf } from '../forms/object-of.ts';
import { PriorityField, priorityOf } from '../forms/PriorityField.tsx';
import { AskBeforeField, SkillPatternsField } from '../forms/SkillPatternsField.tsx';
import { submitOnCtrlEnter } from '../forms/submit-keys.ts';
import { Button } from '../ui/Button.tsx';
import { Confirm } from '../ui/Dialog.tsx';
import { issueOf, NumberField, SelectField, TextAreaField, TextField } from '../ui/Field.tsx';
import { Section } from '../ui/Page.tsx';
import { useAct } from '../ui/useAct.ts';

interface Edited {
  readonly name?: string;
  readonly description?: string;
  readonly model?: string;
  readonly instructions?: string;
  readonly variables?: string;
  readonly tool_rules?: string;
  readonly guards?: string;
  readonly metadata?: string;
  readonly memory?: string;
  readonly recall?: string;
  readonly profile?: string;
  readonly quiet?: string;
  readonly former?: string;
  readonly priority?: string;
  readonly max_concurrency?: string;
  readonly keep_prompts?: string;
  readonly skills?: readonly string[];
  readonly approvals?: readonly string[];
  readonly agents?: readonly string[];
  readonly fallback_models?: readonly string[];
  readonly model_settings?: SettingTexts;
}

/** The fields that are not plain text. */
type Listed = 'skills' | 'approvals' | 'agents' | 'fallback_models' | 'model_settings';

const texts = [
  ...['name', 'description', 'model', 'instructions', 'variables', 'metadata', 'memory'],
  ...['recall', 'profile', 'memory_formation', 'priority', 'max_concurrency'],
  ...['tool_rules', 'guards', 'keep_prompts'],
];
const lists = ['skills', 'approvals', 'agents', 'fallback_models'];
const fields = [...texts, ...lists, ...settingIssues];

function changesOf(
  {
    model,
    variables,
    tool_rules: rules,
    guards,
    metadata,
    skills,
    approvals,
    agents,
    memory,
    recall,
    profile,
    quiet,
    former,
    priority,
    max_concurrency: runs,
    keep_prompts: keeps,
    fallback_models: fallbacks,
    model_settings: settings,
    ...rest
  }: Edited,
  { memory_formation: formation }: AgentForSession,
): Schema<'AgentChanges'> {
  return {
    ...rest,
    ...(skills && { skills: [...skills] }),
    ...(approvals && { approvals: [...approvals] }),
    ...(agents && { agents: [...agents] }),
    ...(fallbacks && { fallback_models: [...fallbacks] }),
    ...(settings && { model_settings: settingsOf(settings) }),
    ...(model !== undefined && { model: model === '' ? null : model }),
    ...(memory !== undefined && { memory: memoryOf(memory) }),
    ...(recall !== undefined && { recall: recallOf(recall) }),
    ...(profile !== undefined && { profile: profileOf(profile) }),
    ...((quiet !== undefined || former !== undefined) && {
      memory_formation: formationOf(
        quiet ?? String(formation?.quiet_seconds ?? ''),
        former ?? formation?.model ?? '',
        formation,
      ),
    }),
    ...(priority !== undefined && { priority: priorityOf(priority) }),
    ...(keeps !== undefined && { keep_prompts: keeps === 'on' }),
    ...(runs !== undefined && { max_concurrency: numberOf(runs) }),
    ...(variables !== undefined && {
      variables: objectOf(variables, 'variables') as Record<string, string>,
    }),
    ...(rules !== undefined && { tool_rules: rulesOf(rules) }),
    ...(guards !== undefined && { guards: guardsOf(guards) }),
    ...(metadata !== undefined && { metadata: objectOf(metadata, 'metadata') }),
  };
}

export function AgentSettings({ agent }: { agent: AgentForSession }) {
  const missing = agent.missing_scopes;
  const [edited, setEdited] = useState<Edited>({});
  const [warnings, setWarnings] = useState<readonly string[]>([]);
  const isEdited = Object.keys(edited).length > 0;
  const save = useAct({
    act: async () => changeAgent(agent.id, changesOf(edited, agent)),
    done: 'The agent is saved',
    changes: [['agents']],
    quiet: true,
  });
  const blocked = useBlocker({
    shouldBlockFn: () => isEdited,
    enableBeforeUnload: isEdited,
    withResolver: true,
  });
  const { error } = save;
  /** A field with its stored value counts as unedited. */
  const edit = (name: keyof Omit<Edited, Listed>, value: string, stored: string) =>
    setEdited(({ [name]: _, ...others }) =>
      value === stored ? others : { ...others, [name]: value },
    );
  const editSettings = (model_settings: SettingTexts) =>
    setEdited(({ model_settings: _, ...others }) =>
      isSame(settingsOf(model_settings), agent.model_settings)
        ? others
        : { ...others, model_settings },
    );
  const text = (name: keyof Omit<Edited, Listed>, stored: string) => ({
    value: edited[name] ?? stored,
    onValue: (value: string) => edit(name, value, stored),
  });
  const stored = {
    memory: agent.memory,
    recall: String(agent.recall?.limit ?? ''),
    profile: String(agent.profile?.max_bytes ?? ''),
    quiet: String(agent.memory_formation?.quiet_seconds ?? ''),
    former: agent.memory_formation?.model ?? '',
  };
  function forget() {
    setEdited({});
    save.reset();
  }
  return (
    <Section className="max-w-5xl">
      {missing.length > 0 && (
        <p role="note" className="mb-5 text-[13px] text-muted">
          Your session can pause and resume this agent, but not change, try or delete it: its key
          lacks the scope {missing.join(', ')} for what the agent may call.
        </p>
      )}
      <form
        noValidate
        className="flex flex-col gap-5"
        onSubmit={(event) => {
          event.preventDefault();
          if (!isEdited || missing.length > 0 || save.isPending) return;
          save.mutate(undefined, {
            onSuccess(saved) {
              forget();
              setWarnings(saved.warnings ?? []);
            },
          });
        }}
        onKeyDown={submitOnCtrlEnter}
      >
        <div className="grid gap-5 sm:grid-cols-2">
          <TextField label="Name" error={issueOf(error, 'name')} {...text('name', agent.name)} />
          <TextField
            label="Model"
            optional
            hint="provider/model. If empty, the platform’s DEFAULT_MODEL."
            error={issueOf(error, 'model')}
            {...text('model', agent.model ?? '')}
            placeholder="the default"
            className="font-mono text-[13px]"
          />
        </div>
        <TextAreaField
          label="Description"
          optional
          error={issueOf(error, 'description')}
          {...text('description', agent.description)}
          rows={2}
        />
        <TextAreaField
          label="Instructions"
          optional
          hint="The model gets them before every task. {{date}}, {{user.name}}, {{agent.name}} and the names of variables are filled in."
          error={issueOf(error, 'instructions')}
          {...text('instructions', agent.instructions)}
          rows={10}
          className="min-h-40 resize-y"
        />
        {warnings.length > 0 && (
          <p role="note" className="text-[13px] text-muted">
            {warnings.join(' ')}
          </p>
        )}
        <ObjectField
          label="Variables (a JSON object of texts)"
          optional
          hint="{{company}} in the instructions becomes the text of company. time_zone is the zone of {{date}}."
          rows={3}
          value={edited.variables ?? jsonText(agent.variables)}
          onValue={(text) => edit('variables', text, jsonText(agent.variables))}
          error={issueOf(error, 'variables')}
        />
        <FallbackModelsField
          model={edited.model ?? agent.model}
          values={edited.fallback_models ?? agent.fallback_models}
          onValues={(fallback_models) => setEdited((before) => ({ ...before, fallback_models }))}
          error={issueOf(error, 'fallback_models')}
        />
        <fieldset>
          <legend className="mb-3 text-[13px] font-semibold">Model settings</legend>
          <ModelSettingsFields
            values={edited.model_settings ?? settingTexts(agent.model_settings)}
            onValues={editSettings}
            error={error}
          />
        </fieldset>
        <SkillPatternsField
          values={edited.skills ?? agent.skills}
          onValues={(skills) => setEdited((before) => ({ ...before, skills }))}
          error={issueOf(error, 'skills')}
        />
        <AskBeforeField
          values={edited.approvals ?? agent.approvals}
          onValues={(approvals) => setEdited((before) => ({ ...before, approvals }))}
          error={issueOf(error, 'approvals')}
        />
        <ToolRulesField
          value={edited.tool_rules ?? jsonText(agent.tool_rules)}
          onValue={(text) => edit('tool_rules', text, jsonText(agent.tool_rules))}
          error={issueOf(error, 'tool_rules')}
        />
        <GuardsField
          value={edited.guards ?? jsonText(agent.guards)}
          onValue={(text) => edit('guards', text, jsonText(agent.guards))}
          error={issueOf(error, 'guards')}
        />
        <CalledAgentsField
          agentId={agent.id}
          values={edited.agents ?? agent.agents}
          onValues={(agents) => setEdited((before) => ({ ...before, agents }))}
          error={issueOf(error, 'agents')}
        />
        <AgentMemoryFields
          values={{
            memory: edited.memory ?? stored.memory,
            recall: edited.recall ?? stored.recall,
            profile: edited.profile ?? stored.profile,
            quiet: edited.quiet ?? stored.quiet,
            former: edited.former ?? stored.former,
          }}
          onValue={(name, value) => edit(name, value, stored[name])}
          error={error}
        />
        <div className="grid gap-5 sm:grid-cols-2">
          <PriorityField
            none="normal (the default)"
            {...text('priority', agent.priority ?? '')}
            error={error}
          />
          <NumberField
            label="Runs at a time"
            optional
            hint="If empty, no limit. Further jobs wait for a place."
            error={issueOf(error, 'max_concurrency')}
            placeholder="No limit"
            {...text('max_concurrency', String(agent.max_concurrency ?? ''))}
          />
        </div>
        <SelectField
          label="What was sent"
          hint="Kept, the prompt of each call of the model is shown at its step. It holds what people have written."
          error={issueOf(error, 'keep_prompts')}
          options={[
            { value: 'off', label: 'not kept' },
            { value: 'on', label: 'kept' },
          ]}
          {...text('keep_prompts', agent.keep_prompts ? 'on' : 'off')}
        />
        <ObjectField
          label="Metadata (a JSON object)"
          hint="Any further data about the agent."
          rows={4}
          value={edited.metadata ?? jsonText(agent.metadata)}
          onValue={(text) => edit('metadata', text, jsonText(agent.metadata))}
          error={issueOf(error, 'metadata')}
        />
        <FormProblem error={error} fields={fields} />
        <div className="sticky bottom-0 -mx-4 -mb-4 flex items-center justify-end gap-2 rounded-b-lg border-t bg-surface px-4 py-3">
          <p role="status" className="mr-auto text-[13px] text-muted max-sm:hidden">
            {isEdited ? 'Not saved yet' : 'A change counts from the next call of the model on'}
          </p>
          <Button disabled={!isEdited} onClick={forget}>
            Discard
          </Button>
          <Button
            type="submit"
            look="primary"
            disabled={!isEdited || missing.length > 0}
            busy={save.isPending}
          >
            Save changes
          </Button>
        </div>
      </form>
      <Confirm
        open={blocked.status === 'blocked'}
        onClose={() => blocked.reset?.()}
        title="Leave without saving?"
        verb="Leave"
        keep="Stay here"
        act={async () => blocked.proceed?.()}
      >
        What you have changed of {agent.name || agent.id} is lost.
      </Confirm>
    </Section>
  );
}
