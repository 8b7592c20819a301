import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { createAgent } from '../api/agents.ts';
import { Dialog } from '../ui/Dialog.tsx';
import { Field, Input, issueOf, TextArea } from '../ui/Field.tsx';
import { useAct } from '../ui/useAct.ts';
import { FormFrame } from './FormFrame.tsx';
import { SkillPatternsField } from './SkillPatternsField.tsx';

const fields = ['id', 'name', 'model', 'instructions', 'skills'];

/** Makes an agent, and goes to it. What is left empty is left to the platform. */
export function NewAgent({ onClose }: { onClose: () => void }) {
  const navigate = useNavigate();
  const [texts, setTexts] = useState({ id: '', name: '', model: '', instructions: '' });
  const [skills, setSkills] = useState<string[]>([]);
  const set = (name: keyof typeof texts) => (event: { target: { value: string } }) =>
    setTexts((before) => ({ ...before, [name]: event.target.value }));
  const create = useAct({
    act: () => {
      const given = Object.entries(texts).filter(([, text]) => text !== '');
      return createAgent({ ...Object.fromEntries(given), ...(skills.length > 0 && { skills }) });
    },
    done: ({ id }) => `The agent ${id} is there`,
    changes: [['agents']],
    quiet: true,
  });
  const { error } = create;
  const submit = () =>
    create.mutate(undefined, {
      onSuccess: ({ id }) => void navigate({ to: '/agents/$agentId', params: { agentId: id } }),
    });
  return (
    <Dialog
      open
      isForm
      onClose={onClose}
      title="New agent"
      description="A name that jobs run under, and, with instructions and a model, one that thinks."
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
          <Field
            label="Id"
            hint="What requests name it by, in X-Agent-Id. It never changes."
            error={issueOf(error, 'id')}
          >
            {(control) => (
              <Input
                {...control}
                value={texts.id}
                onChange={set('id')}
                placeholder="support"
                autoComplete="off"
                className="font-mono text-[13px]"
              />
            )}
          </Field>
          <Field label="Name" optional error={issueOf(error, 'name')}>
            {(control) => (
              <Input {...control} value={texts.name} onChange={set('name')} placeholder="Support" />
            )}
          </Field>
        </div>
        <Field
          label="Model"
          optional
          hint="provider/model. Empty is the platform’s DEFAULT_MODEL."
          error={issueOf(error, 'model')}
        >
          {(control) => (
            <Input
              {...control}
              value={texts.model}
              onChange={set('model')}
              placeholder="anthropic/claude-sonnet-4-5"
              className="font-mono text-[13px]"
            />
          )}
        </Field>
        <Field
          label="Instructions"
          optional
          hint="What the model is told first, whatever it is asked."
          error={issueOf(error, 'instructions')}
        >
          {(control) => (
            <TextArea
              {...control}
              value={texts.instructions}
              onChange={set('instructions')}
              rows={5}
              placeholder="You answer customers of a harbour office, in one sentence."
            />
          )}
        </Field>
        <SkillPatternsField values={skills} onValues={setSkills} error={issueOf(error, 'skills')} />
      </FormFrame>
    </Dialog>
  );
}
