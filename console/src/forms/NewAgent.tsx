import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { createAgent } from '../api/agents.ts';
import type { Schema } from '../api/client.ts';
import { Dialog } from '../ui/Dialog.tsx';
import { issueOf, NumberField, TextAreaField, TextField } from '../ui/Field.tsx';
import { Fold } from '../ui/Fold.tsx';
import { useAct } from '../ui/useAct.ts';
import {
  AgentMemoryFields,
  formationOf,
  memoryOf,
  profileOf,
  recallOf,
} from './AgentMemoryFields.tsx';
import { CalledAgentsField } from './CalledAgentsField.tsx';
import { FallbackModelsField } from './FallbackModelsField.tsx';
import { FormFrame } from './FormFrame.tsx';
import { ModelSettingsFields } from './ModelSettingsFields.tsx';
import { type SettingTexts, settingIssues, settingsOf } from './model-settings.ts';
import { numberOf } from './numbers.ts';
import { ObjectField } from './ObjectField.tsx';
import { objectOf } from './object-of.ts';
import { PriorityField, priorityOf } from './PriorityField.tsx';
import { AskBeforeField, SkillPatternsField } from './SkillPatternsField.tsx';

const folded = ['fallback_models', ...settingIssues];
const shown = [
  ...['id', 'name', 'description', 'model', 'instructions', 'skills', 'approvals', 'agents'],
  ...['memory', 'recall', 'profile', 'memory_formation', 'priority', 'max_concurrency', 'metadata'],
];
const fields = [...shown, ...folded];

type Lists = Pick<
  Required<Schema<'NewAgent'>>,
  'skills' | 'approvals' | 'agents' | 'fallback_models'
>;
const noTexts = { id: '', name: '', description: '', model: '', instructions: '' };
const noLists: Lists = { skills: [], approvals: [], agents: [], fallback_models: [] };

/** Makes an agent, and goes to it. What is left empty is left to the platform. */
export function NewAgent({ onClose }: { onClose: () => void }) {
  const navigate = useNavigate();
  const [texts, setTexts] = useState(noTexts);
  const [memory, setMemory] = useState({
    memory: 'user',
    recall: '',
    profile: '',
    quiet: '',
    former: '',
  });
  const [priority, setPriority] = useState('');
  const [runs, setRuns] = useState('');
  const [metadata, setMetadata] = useState('{}');
  const [lists, setLists] = useState(noLists);
  const [settings, setSettings] = useState<SettingTexts>({});
  const set = (name: keyof typeof texts) => (value: string) =>
    setTexts((before) => ({ ...before, [name]: value }));
  const list = (name: keyof Lists) => ({
    values: lists[name],
    onValues: (values: string[]) => setLists((before) => ({ ...before, [name]: values })),
    error: issueOf(error, name),
  });
  const create = useAct({
    act: async () => {
      const given = Object.entries({ ...texts, ...lists }).filter(([, value]) => value.length > 0);
      return createAgent({
        ...Object.fromEntries(given),
        model_settings: settingsOf(settings),
        memory: memoryOf(memory.memory),
        recall: recallOf(memory.recall),
        profile: profileOf(memory.profile),
        memory_formation: formationOf(memory.quiet, memory.former),
        priority: priorityOf(priority),
        max_concurrency: numberOf(runs),
        metadata: objectOf(metadata, 'metadata'),
      });
    },
    done: ({ id }) => `The agent ${id} is there`,
    changes: [['agents']],
    quiet: true,
  });
  const { error } = create;
  const submit = () =>
    create.mutate(undefined, {
      onSuccess({ id }) {
        onClose();
        void navigate({ to: '/agents/$agentId', params: { agentId: id } });
      },
    });
  return (
    <Dialog
      open
      isForm
      onClose={onClose}
      title="New agent"
      description="Jobs run as an agent. With instructions and a model it can think."
    >
      <FormFrame
        error={error}
        fields={fields}
        verb="Create agent"
        busy={create.isPending}
        onSubmit={submit}
        onCancel={onClose}
      >
        <div className="grid gap-4 sm:grid-cols-2">
          <TextField
            label="Id"
            hint="Its name in requests (X-Agent-Id). It cannot be changed later."
            error={issueOf(error, 'id')}
            value={texts.id}
            onValue={set('id')}
            placeholder="support"
            autoComplete="off"
            className="font-mono text-[13px]"
          />
          <TextField
            label="Name"
            optional
            error={issueOf(error, 'name')}
            value={texts.name}
            onValue={set('name')}
            placeholder="Support"
          />
        </div>
        <TextAreaField
          label="Description"
          optional
          error={issueOf(error, 'description')}
          value={texts.description}
          onValue={set('description')}
          rows={2}
        />
        <TextField
          label="Model"
          optional
          hint="provider/model. If empty, the platform’s DEFAULT_MODEL."
          error={issueOf(error, 'model')}
          value={texts.model}
          onValue={set('model')}
          placeholder="anthropic/claude-sonnet-4-5"
          className="font-mono text-[13px]"
        />
        <TextAreaField
          label="Instructions"
          optional
          hint="The model gets them before every task."
          error={issueOf(error, 'instructions')}
          value={texts.instructions}
          onValue={set('instructions')}
          rows={5}
          placeholder="You answer customers of a harbour office, in one sentence."
        />
        <SkillPatternsField {...list('skills')} />
        <AskBeforeField {...list('approvals')} />
        <CalledAgentsField agentId={texts.id} {...list('agents')} />
        <AgentMemoryFields
          values={memory}
          onValue={(name, value) => setMemory((before) => ({ ...before, [name]: value }))}
          error={error}
        />
        <div className="grid gap-5 sm:grid-cols-2">
          <PriorityField
            none="normal (the default)"
            value={priority}
            onValue={setPriority}
            error={error}
          />
          <NumberField
            label="Runs at a time"
            optional
            hint="If empty, no limit."
            error={issueOf(error, 'max_concurrency')}
            placeholder="No limit"
            value={runs}
            onValue={setRuns}
          />
        </div>
        <Fold
          label="Fallback models and model settings"
          isNeeded={folded.some((name) => issueOf(error, name) !== undefined)}
        >
          <FallbackModelsField model={texts.model} {...list('fallback_models')} />
          <ModelSettingsFields values={settings} onValues={setSettings} error={error} />
        </Fold>
        <Fold label="Metadata" isNeeded={issueOf(error, 'metadata') !== undefined}>
          <ObjectField
            label="Metadata (a JSON object)"
            hint="Any further data about the agent."
            rows={4}
            value={metadata}
            onValue={setMetadata}
            error={issueOf(error, 'metadata')}
          />
        </Fold>
      </FormFrame>
    </Dialog>
  );
}
