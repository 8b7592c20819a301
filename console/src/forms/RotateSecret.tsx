import { useState } from 'react';
import { changeWebhook } from '../api/webhooks.ts';
import { Dialog } from '../ui/Dialog.tsx';
import { issueOf } from '../ui/Field.tsx';
import { SecretOnce } from '../ui/SecretOnce.tsx';
import { useAct } from '../ui/useAct.ts';
import { newSecret } from '../webhooks/health.ts';
import { FormFrame } from './FormFrame.tsx';
import { SecretField } from './SecretField.tsx';

/** Gives a webhook another secret, and shows it once. */
export function RotateSecret({ webhookId, onClose }: { webhookId: string; onClose: () => void }) {
  const [own, setOwn] = useState('');
  const rotating = useAct({
    async act() {
      const secret = own === '' ? newSecret() : own;
      await changeWebhook(webhookId, { secret });
      return secret;
    },
    done: 'Secret rotated',
    changes: [['webhooks']],
    quiet: true,
    isSecret: true,
  });
  if (rotating.isSuccess) {
    return (
      <SecretOnce
        title="Secret rotated"
        label="New signing secret"
        value={rotating.data}
        lost="Without it, you have to rotate the secret again."
        onClose={() => {
          rotating.reset();
          onClose();
        }}
      >
        <p className="text-[13px] leading-relaxed text-muted">
          It applies from the next attempt on, also to pending retries. Set it in the receiver.
        </p>
      </SecretOnce>
    );
  }
  return (
    <Dialog
      open
      isForm
      onClose={onClose}
      title="Rotate the secret"
      description="The old secret stops signing at once. Until the receiver has the new one, it refuses deliveries."
    >
      <FormFrame
        verb="Rotate secret"
        busy={rotating.isPending}
        error={rotating.error}
        fields={['secret']}
        onSubmit={() => rotating.mutate()}
        onCancel={onClose}
      >
        <SecretField
          label="New secret"
          error={issueOf(rotating.error, 'secret')}
          hint="If empty, this browser generates a random one."
          value={own}
          onValue={setOwn}
        />
      </FormFrame>
    </Dialog>
  );
}
