import { useState } from 'react';
import { deleteBudget, type Owner, type OwnUsage, setBudget } from '../api/usage.ts';
import { Dialog } from '../ui/Dialog.tsx';
import { issueOf, NumberField } from '../ui/Field.tsx';
import { useAct } from '../ui/useAct.ts';
import { FormFrame } from './FormFrame.tsx';
import { numberOf } from './numbers.ts';

const fields = ['tokens_per_day', 'tokens_per_month', 'usd_per_day', 'usd_per_month'];
const textOf = (limit: number | null) => (limit === null ? '' : String(limit));

/** How many tokens an owner may use, and for how much money. All fields empty is no budget. */
export function BudgetDialog({
  owner,
  limits,
  onClose,
}: {
  owner: Owner;
  limits: OwnUsage['limits'];
  onClose: () => void;
}) {
  const [day, setDay] = useState(textOf(limits.tokens_per_day));
  const [month, setMonth] = useState(textOf(limits.tokens_per_month));
  const [usdDay, setUsdDay] = useState(textOf(limits.usd_per_day));
  const [usdMonth, setUsdMonth] = useState(textOf(limits.usd_per_month));
  const save = useAct({
    act: () => {
      const budget = {
        tokens_per_day: numberOf(day),
        tokens_per_month: numberOf(month),
        usd_per_day: numberOf(usdDay),
        usd_per_month: numberOf(usdMonth),
      };
      const isNone = Object.values(budget).every((limit) => limit === null);
      return isNone ? deleteBudget(owner) : setBudget(owner, budget);
    },
    done: 'The budget is saved',
    changes: [['usage']],
    quiet: true,
  });
  return (
    <Dialog
      open
      isForm
      onClose={onClose}
      title="Budget"
      description="When it is used up, jobs fail with budget_exceeded before their next call of a model."
    >
      <FormFrame
        error={save.error}
        fields={fields}
        verb="Save budget"
        busy={save.isPending}
        onSubmit={() => save.mutate(undefined, { onSuccess: onClose })}
        onCancel={onClose}
      >
        <NumberField
          placeholder="No limit"
          label="Tokens a day"
          hint="Days begin at midnight UTC. If empty, no limit."
          error={issueOf(save.error, 'tokens_per_day')}
          value={day}
          onValue={setDay}
        />
        <NumberField
          placeholder="No limit"
          label="Tokens a month"
          hint="A calendar month. If empty, no limit."
          error={issueOf(save.error, 'tokens_per_month')}
          value={month}
          onValue={setMonth}
        />
        <NumberField
          placeholder="No limit"
          label="US dollars a day"
          hint="Calls of models without a known price are then refused."
          error={issueOf(save.error, 'usd_per_day')}
          value={usdDay}
          inputMode="decimal"
          onValue={setUsdDay}
        />
        <NumberField
          placeholder="No limit"
          label="US dollars a month"
          error={issueOf(save.error, 'usd_per_month')}
          value={usdMonth}
          inputMode="decimal"
          onValue={setUsdMonth}
        />
      </FormFrame>
    </Dialog>
  );
}
