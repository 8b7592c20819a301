import { useState } from 'react';
import { deleteBudget, type Owner, type OwnUsage, setBudget } from '../api/usage.ts';
import { issueOf, NumberField } from '../ui/Field.tsx';
import { FormDialog } from './FormDialog.tsx';
import { numberOf } from './numbers.ts';

type Limit = keyof OwnUsage['limits'];

const limitFields: readonly { name: Limit; label: string; hint?: string }[] = [
  {
    name: 'tokens_per_day',
    label: 'Tokens a day',
    hint: 'Days begin at midnight UTC. If empty, no limit.',
  },
  {
    name: 'tokens_per_month',
    label: 'Tokens a month',
    hint: 'A calendar month. If empty, no limit.',
  },
  {
    name: 'usd_per_day',
    label: 'US dollars a day',
    hint: 'With a decimal point: 12.5. Calls of models without a known price are then refused.',
  },
  { name: 'usd_per_month', label: 'US dollars a month' },
];

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
  const [texts, setTexts] = useState(() => mapLimits((name) => `${limits[name] ?? ''}`));
  const save = () => {
    const budget = mapLimits((name) => numberOf(texts[name], { isDecimal: isMoney(name) }));
    const isNone = Object.values(budget).every((limit) => limit === null);
    return isNone ? deleteBudget(owner) : setBudget(owner, budget);
  };
  return (
    <FormDialog
      title="Budget"
      description="When it is used up, jobs fail with budget_exceeded before their next call of a model."
      verb="Save budget"
      fields={limitFields.map(({ name }) => name)}
      act={save}
      done="The budget is saved"
      changes={[['usage']]}
      onClose={onClose}
    >
      {(error) =>
        limitFields.map(({ name, label, hint }) => (
          <NumberField
            key={name}
            placeholder="No limit"
            label={label}
            hint={hint}
            error={issueOf(error, name)}
            value={texts[name]}
            inputMode={isMoney(name) ? 'decimal' : 'numeric'}
            onValue={(text) => setTexts({ ...texts, [name]: text })}
          />
        ))
      }
    </FormDialog>
  );
}

const isMoney = (name: Limit) => name.startsWith('usd');

const mapLimits = <Value,>(limitOf: (name: Limit) => Value) =>
  Object.fromEntries(limitFields.map(({ name }) => [name, limitOf(name)])) as Record<Limit, Value>;
