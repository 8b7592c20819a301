import { useQuery } from '@tanstack/react-query';
import { agentsQuery } from '../api/agents.ts';
import { PickManyField } from '../ui/PickMany.tsx';

/** The agent's fallback models. Offers the models of other agents. */
export function FallbackModelsField({
  model,
  values,
  onValues,
  error,
}: {
  /** The agent's own model, which is not offered. */
  model: string | null;
  values: readonly string[];
  onValues: (values: string[]) => void;
  error?: string | undefined;
}) {
  const { data } = useQuery(agentsQuery());
  const used = (data?.data ?? []).flatMap((agent) => [agent.model, ...agent.fallback_models]);
  const others = used.filter((one): one is string => one !== null && one !== model);
  return (
    <PickManyField
      label="Fallback models"
      optional
      error={error}
      hint="Up to 5, asked in this order while the provider before them is out of order or limits the rate."
      values={values}
      onValues={onValues}
      choices={[...new Set(others)].map((value) => ({ value, about: 'Used by an agent' }))}
      placeholder="provider/model"
    />
  );
}
