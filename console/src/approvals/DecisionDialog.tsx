import { useMemo, useState } from 'react';
import { type Approval, decideApproval, type Verb } from '../api/approvals.ts';
import { FormFrame } from '../forms/FormFrame.tsx';
import { Dialog } from '../ui/Dialog.tsx';
import { issueOf, issuesWithin, TextAreaField } from '../ui/Field.tsx';
import { Fields } from '../ui/Fields.tsx';
import { lazyPart } from '../ui/lazily.tsx';
import { useAct } from '../ui/useAct.ts';
import { AskedPage } from './AskedPage.tsx';
import { answerSchema, defaultsOf } from './answer-schema.ts';

const SchemaForm = lazyPart(async () => (await import('../forms/SchemaForm.tsx')).SchemaForm);

/** A decision that is being made. */
export interface Deciding {
  readonly approval: Approval;
  readonly verb: Verb;
}

const words = {
  approve: { title: 'Approve this?', verb: 'Approve', done: 'Approved' },
  reject: { title: 'Reject this?', verb: 'Reject', done: 'Rejected' },
};

/** Asks for a reason and the fields of the approval's form, then decides. Shows the refusal if another decision came first. */
export function DecisionDialog({
  deciding: { approval, verb },
  onClose,
  onDecided,
}: {
  deciding: Deciding;
  onClose: () => void;
  onDecided?: (approval: Approval) => void;
}) {
  const [reason, setReason] = useState('');
  const fields = verb === 'approve' ? approval.fields : null;
  const [answer, setAnswer] = useState(() => (fields === null ? undefined : defaultsOf(fields)));
  const schema = useMemo(() => (fields === null ? null : answerSchema(fields)), [fields]);
  const decide = useAct({
    act: () => decideApproval(approval.approval_id, verb, { reason, answer }),
    done: words[verb].done,
    changes: [['approvals'], ['jobs']],
    quiet: true,
  });
  function submit() {
    decide.mutate(undefined, {
      onSuccess() {
        onClose();
        onDecided?.(approval);
      },
    });
  }
  return (
    <Dialog
      open
      isForm
      onClose={onClose}
      title={words[verb].title}
      description={<span className="wrap-anywhere">{approval.title}</span>}
    >
      <FormFrame
        error={decide.error}
        fields={['reason', 'answer']}
        verb={words[verb].verb}
        busy={decide.isPending}
        onSubmit={submit}
        onCancel={onClose}
      >
        <Fields label="What is asked" value={approval.details} />
        {verb === 'approve' && <AskedPage link={approval.link} />}
        {schema && (
          <SchemaForm
            prefix="answer"
            schema={schema}
            value={answer}
            onValue={(value) => setAnswer(value as Record<string, unknown>)}
            issues={issuesWithin(decide.error, 'answer')}
          />
        )}
        <TextAreaField
          label="Reason"
          optional
          hint="The run gets it, and it is shown with the decision. Ctrl Enter decides."
          error={issueOf(decide.error, 'reason')}
          rows={3}
          value={reason}
          onValue={setReason}
          className="resize-y"
        />
      </FormFrame>
    </Dialog>
  );
}
