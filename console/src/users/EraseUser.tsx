import { useState } from 'react';
import { type Erased, eraseUser } from '../api/user-data.ts';
import { FormProblem } from '../forms/FormProblem.tsx';
import { Button } from '../ui/Button.tsx';
import { Dialog } from '../ui/Dialog.tsx';
import { TextField } from '../ui/Field.tsx';
import { useAct } from '../ui/useAct.ts';

/** Asks for the id of the user before it erases the user's data. */
export function EraseUser({
  userId,
  onErased,
  onClose,
}: {
  userId: string;
  onErased: (erased: Erased) => void;
  onClose: () => void;
}) {
  const [typed, setTyped] = useState('');
  const [cancelsJobs, setCancelsJobs] = useState(false);
  const erase = useAct({
    act: () => eraseUser(userId, cancelsJobs),
    changes: [['memories'], ['conversations'], ['jobs'], ['usage']],
    quiet: true,
  });
  const submit = () =>
    erase.mutate(undefined, {
      onSuccess(erased) {
        onErased(erased);
        onClose();
      },
    });
  return (
    <Dialog
      open
      isForm
      onClose={onClose}
      title={`Erase all data of ${userId}?`}
      description="This cannot be undone. Export the data first if you need them."
    >
      <form
        noValidate
        className="flex flex-col gap-4"
        onSubmit={(event) => {
          event.preventDefault();
          if (typed === userId) submit();
        }}
      >
        <ul className="list-disc pl-5 text-[13px]">
          <li>The memories of this user, of all agents, are deleted.</li>
          <li>Conversations and their messages are deleted.</li>
          <li>Jobs stay, without input, output, steps and name of the user.</li>
          <li>Backups and the platform’s log keep what they have.</li>
        </ul>
        <TextField
          label={`Type ${userId} to confirm`}
          value={typed}
          onValue={setTyped}
          autoComplete="off"
          spellCheck={false}
          className="font-mono text-[13px]"
        />
        <label className="flex items-center gap-2 text-[13px]">
          <input
            type="checkbox"
            checked={cancelsJobs}
            onChange={({ target }) => setCancelsJobs(target.checked)}
          />
          Cancel the jobs of this user that have not ended
        </label>
        <FormProblem error={erase.error} fields={[]} />
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Keep them</Button>
          <Button type="submit" look="danger" disabled={typed !== userId} busy={erase.isPending}>
            Erase the data
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
