import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { createAgent } from '../api/agents.ts';
import { Dialog } from '../ui/Dialog.tsx';
import { issueOf, TextAreaField, TextField } from '../ui/Field.tsx';
import { useAct } from '../ui/useAct.ts';
import { FormFrame } from './FormFrame.tsx';
import { AskBeforeField, SkillPatternsField } from './SkillPatternsField.tsx';

const fields = ['id', 'name', 'model', 'instructions', 'skills', 'approvals'];

/** Makes an agent, and goes to it. What is left empty is left to the platform. */
export function NewAgent({ onClose }: { onClose: () => void }) {
  const navigate = useNavigate();
  const [texts, setTexts] = useState({ id: '', name: '', model: '', instructions: '' });
  const [skills, setSkills] = useState<string[]>([]);
  const [approvals, setApprovals] = useState<string[]>([]);
  const set = (name: keyof typeof texts) => (value: string) =>
    setTexts((before) => ({ ...before, [name]: value }));
  const create = useAct({
    act: () => {
      const given = Object.entries(texts).filter(([, text]) => text !== '');
      return createAgent({
        ...Object.fromEntries(given),
        ...(skills.length > 0 && { skills }),
        ...(approvals.length > 0 && { approvals }),
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
        <SkillPatternsField values={skills} onValues={setSkills} error={issueOf(error, 'skills')} />
        <AskBeforeField
          values={approvals}
          onValues={setApprovals}
          error={issueOf(error, 'approvals')}
        />
      </FormFrame>
    </Dialog>
  );
}
